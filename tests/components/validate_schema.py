"""Holds documents against a JSON Schema, with the validator that most Python programs use.

Reads `{"schema": ..., "documents": {NAME: ...}}` from standard input; prints, for each name, the
list of what is wrong, as JSON. A schema that is none itself ends it with its message.
"""

import json
import sys

from jsonschema import Draft202012Validator

asked = json.load(sys.stdin)
Draft202012Validator.check_schema(asked["schema"])
validator = Draft202012Validator(asked["schema"])
found = {
    name: [f"{error.json_path}: {error.message}"[:300] for error in validator.iter_errors(document)]
    for name, document in asked["documents"].items()
}
json.dump(found, sys.stdout)
