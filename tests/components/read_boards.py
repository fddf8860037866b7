#!/usr/bin/env python3
"""Reads dashboards with the types that Grafana publishes of its schema, and says what these have
no place for. Standard input: a JSON object of boards by name. Prints for each the number of panels
and a list of [place, how]: `lost` if the types know no such field there, `changed` if they hold
another value."""
import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


def differences(ours, theirs, place):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key in theirs:
                yield from differences(value, theirs[key], f"{place}.{key}")
            else:
                yield f"{place}.{key}", "lost"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for one, other in zip(ours, theirs):
            yield from differences(one, other, f"{place}[]")
    elif ours != theirs:
        yield place, "changed"


register_default_plugins()
found = {}
for name, board in json.load(sys.stdin).items():
    typed = Dashboard.from_json(board)
    again = json.loads(JSONEncoder().encode(typed))
    found[name] = {
        "panels": len(typed.panels),
        "differences": sorted(set(differences(board, again, ""))),
    }
json.dump(found, sys.stdout)
