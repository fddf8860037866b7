#!/usr/bin/env python3
"""Reads a page in the Prometheus text format from standard input with the reference parser, and
prints its samples as JSON, values as Python writes them. With --many the input is a JSON list of
pages, and the output a list of what each of them has."""
import json
import sys

from prometheus_client.parser import text_string_to_metric_families



def samples(page):
    return [
        [sample.name, sample.labels, repr(float(sample.value))]
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    ]


text = sys.stdin.read()
if sys.argv[1:] == ["--many"]:
    json.dump([samples(page) for page in json.loads(text)], sys.stdout)
else:
    json.dump(samples(text), sys.stdout)
