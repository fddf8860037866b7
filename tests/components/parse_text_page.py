#!/usr/bin/env python3
"""Reads a page in the Prometheus text format from standard input with the reference parser, and
prints its samples as JSON, values as Python writes them."""
import json
import sys

from prometheus_client.parser import text_string_to_metric_families

samples = [
    [sample.name, sample.labels, repr(float(sample.value))]
    for family in text_string_to_metric_families(sys.stdin.read())
    for sample in family.samples
]
json.dump(samples, sys.stdout)
