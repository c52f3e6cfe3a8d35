# SPDX-License-Identifier: BSD-2-Clause
"""The JSON of sysprof report against its schema."""
import json

from libe2e import TOP, Skip, run, scratch, write

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


def invalid(*documents, schema="report"):
    """Those of the documents that do not keep this schema of docs/, by number, with the error."""
    paths = []
    for i, document in enumerate(documents):
        paths.append(scratch(f"{i}.json"))
        write(paths[-1], json.dumps(document))
    if run(PYTHON, "-c", "import jsonschema").status:
        raise Skip("no jsonschema: tools/install-deps.sh test installs it")
    said = run(PYTHON, "-c", VALIDATE, f"{TOP}/docs/{schema}.schema.json", *paths, check=0).out
    return {paths.index(line.split(" ", 1)[0]): line for line in said.splitlines()}
