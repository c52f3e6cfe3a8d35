#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""
The jobs of docs/CI.md, as they are there: their scripts run in a project with two commits, and the comments that they
post are caught by a server.
"""
import http.server
import json
import os
import re
import shutil
import threading
import urllib.parse

from libe2e import SYSPROF, TOP, Skip, long, main, need_root, read, run, scratch, write

PYTHON = "/usr/bin/python3"  # the one that has yaml

PROGRAM = """
static volatile unsigned sink;
#define WORK(name) __attribute__((noinline)) void name(unsigned n) { for (unsigned i = 0; i < n; i++) sink = sink * 33 + i; }
WORK(parse_header) WORK(hash_body) WORK(pack_body)
int main(void)
{
	for (int i = 0; i < 12000; i++) { parse_header(HEADER); hash_body(9000); pack_body(7000); }
	return 0;
}
"""
MAKEFILE = "bench-program: bench-program.c\n\t$(CC) $(CFLAGS) -o $@ $<\n"


class Comments(http.server.BaseHTTPRequestHandler):
    got = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        Comments.got.append((self.path, self.headers["PRIVATE-TOKEN"], urllib.parse.parse_qs(body)["body"][0]))
        self.send_response(201)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def job_of(language):
    """The first job of docs/CI.md in that section."""
    if run(PYTHON, "-c", "import yaml").status:
        raise Skip("no yaml: tools/install-deps.sh test")
    text = re.search(rf"## {language}\n.*?```yaml\n(.*?)```", read(os.path.join(TOP, "docs/CI.md")), re.S).group(1)
    code = "import json, sys, yaml\nprint(json.dumps(yaml.load(sys.argv[1], yaml.BaseLoader)))"
    document = json.loads(run(PYTHON, "-c", code, text, check=0).out)
    return document.get("jobs", document)["compare"]


def commit(place, header):
    write(os.path.join(place, "bench-program.c"), f"#define HEADER {header}\n{PROGRAM}")
    write(os.path.join(place, "Makefile"), MAKEFILE)
    for words in ["init", "-q"], ["add", "Makefile", "bench-program.c"], \
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"]:
        run("git", *words, cwd=place, check=0)
    return run("git", "rev-parse", "HEAD", cwd=place, check=0).out.strip()


def tool(place, name, text):
    path = os.path.join(place, name)
    write(path, "#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def environment(name):
    """PATH has sysprof, sudo, and a gh that posts as the real one: a body of a file."""
    need_root()
    for command in "git", "curl", "gcc", "make":
        if not shutil.which(command):
            raise Skip(f"no {command}")
    place = scratch(name + "-bin")
    os.mkdir(place)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Comments)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    os.symlink(SYSPROF, os.path.join(place, "sysprof"))
    tool(place, "sudo", 'exec "$@"\n')
    tool(place, "gh", '[ "$1 $2" = "pr comment" ] && [ "$4 $6" = "--repo --body-file" ] || exit 2\n'
         f'exec curl -sSf -o /dev/null --data-urlencode "body@$7" "{url}/$5/$3"\n')
    Comments.got.clear()
    return {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}, url


def github(name, old, new):
    """The exit status of each step that has a script."""
    place = scratch(name)
    for side, header in ("old", old), ("new", new):
        os.makedirs(os.path.join(place, side))
        commit(os.path.join(place, side), header)
    env, _ = environment(name)
    env["GITHUB_STEP_SUMMARY"] = os.path.join(place, "summary")
    values = {"github.event.number": "7", "github.repository": "owner/project", "github.token": "secret"}
    status, failed = [], False
    for step in job_of("GitHub")["steps"]:
        if "run" not in step or (failed and "always()" not in step.get("if", "")):
            continue
        text = re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values[found.group(1)], step["run"])
        done = run("bash", "-e", "-c", text, cwd=place, env=env, timeout=200)
        print(done.out[-1500:], done.err[-300:])
        status.append(done.status)
        failed |= done.status != 0
    return status, place


@long
def test_github():
    status, place = github("slower", 2000, 8000)
    assert status == [0, 1, 0], status
    (path, _, body), = Comments.got
    assert path == "/owner/project/7" and "parse_header" in body and body.startswith("**"), Comments.got
    assert read(os.path.join(place, "summary")) == body
    assert os.path.getsize(os.path.join(place, "compare.html")) > 10000


def gitlab(name, old, new):
    place = scratch(name)
    os.mkdir(place)
    base = commit(place, old)
    commit(place, new)
    env, url = environment(name)
    env.update(CI_MERGE_REQUEST_DIFF_BASE_SHA=base, COMMENT_TOKEN="secret", CI_API_V4_URL=url, CI_PROJECT_ID="3",
               CI_MERGE_REQUEST_IID="7")
    script = "\n".join(job_of("GitLab")["script"])
    done = run("bash", "-e", "-o", "pipefail", "-c", script, cwd=place, env=env, timeout=250)
    print(done.out[-1500:], done.err[-300:])
    return done.status, place


@long
def test_gitlab():
    status, place = gitlab("gitlab", 2000, 8000)
    assert status == 1, status
    (path, token, body), = Comments.got
    assert path == "/projects/3/merge_requests/7/notes" and token == "secret" and "parse_header" in body, Comments.got
    assert os.path.getsize(os.path.join(place, "compare.html")) > 10000


if __name__ == "__main__":
    main(globals())
