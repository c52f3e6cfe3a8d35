# SPDX-License-Identifier: BSD-2-Clause
"""The JSON of sysprof report against its schema."""
import json
import os

from libe2e import Skip, run, scratch

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = os.path.join(TOP, "docs", "report.schema.json")
PYTHON = "/usr/bin/python3"  # the one that Debian's python3-jsonschema is for

# Prints a line for each file that does not keep the schema.
VALIDATE = """
import json, sys
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for path in sys.argv[2:]:
    error = jsonschema.exceptions.best_match(validator.iter_errors(json.load(open(path))))
    if error:
        print(path, list(error.absolute_path), error.message[:200])
"""


def invalid(*documents):
    """Those of the documents that do not keep the schema, by number, with the error."""
    paths = []
    for i, document in enumerate(documents):
        paths.append(scratch(f"{i}.json"))
        with open(paths[-1], "w", encoding="utf-8") as file:
            json.dump(document, file)
    if run(PYTHON, "-c", "import jsonschema").status:
        raise Skip("no jsonschema: tools/install-deps.sh test installs it")
    said = run(PYTHON, "-c", VALIDATE, SCHEMA, *paths, check=0).out
    return {paths.index(line.split(" ", 1)[0]): line for line in said.splitlines()}
