#!/usr/bin/env python3
"""Reads an OpenMetrics page from standard input with the reference parser, and prints its
families as JSON. The parser refuses what the format does not allow."""
import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = {}
for family in text_string_to_metric_families(sys.stdin.read()):
    assert family.name not in families, f"{family.name} is there twice"
    families[family.name] = {
        "type": family.type,
        "unit": family.unit,
        "help": family.documentation,
        "samples": [
            {
                "name": sample.name,
                "labels": sample.labels,
                "value": sample.value if abs(sample.value) != float("inf") else str(sample.value),
                "exemplar": sample.exemplar
                and {"labels": sample.exemplar.labels, "value": str(sample.exemplar.value)},
            }
            for sample in family.samples
        ],
    }
json.dump(families, sys.stdout)
