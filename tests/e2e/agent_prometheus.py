#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# runs: beside long
"""Prometheus scrapes a running agent: its books by Prometheus's own answers, the alerts, and the dashboards' queries.

One agent and one Prometheus are there for all of it; programs of ever new services begin and end meanwhile.
"""
import json
import os
import re
import subprocess
import time

import libe2e as e
import libservers as servers

import standin

RULES = os.path.join(e.TOP, "packaging/prometheus/sysprof-alerts.yaml")
RULE_TESTS = os.path.join(e.TOP, "tests/e2e/backends/alerts.yaml")
SPIN = "import sys, time\nend = time.process_time() + float(sys.argv[1])\nwhile time.process_time() < end: pass"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def spin(service, seconds):
    return subprocess.Popen(["nice", "-n", "19", "python3", "-c", SPIN, str(seconds)],
                            env={**os.environ, "OTEL_SERVICE_NAME": service})


# ---- the books -----------------------------------------------------------------------------------

def parse(text):
    """{series with its labels: value}; no series is there twice."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert name not in found, f"{name} is there twice"
            found[name] = float(value)
    return found


def check_text(text):
    judged = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
    assert (judged.returncode, judged.stdout + judged.stderr) == (0, ""), judged
    parse(text)


def check_books(prometheus):
    """All by one scrape: an instant query has the same one for each of its series."""
    due = prometheus.value("sysprof_ticks_due_total")
    assert due > 100, due
    # at one moment, which lies behind us: nothing is scraped into it any more
    at = time.time() - 2

    def value(expression):
        return prometheus.value(expression, time=at)
    sums = {state: value(f'sum(sysprof_ticks_total{{state="{state}"}})') for state in ("sent", "idle", "filtered", "lost")}
    unexplained = value("sysprof_ticks_unexplained")
    due = value("sysprof_ticks_due_total")
    print(f"  ticks: {due:.0f} due = {sums} + {unexplained:.0f} of idle CPUs")
    assert due == sum(sums.values()) + unexplained, (due, sums, unexplained)
    assert value("sysprof_ticks_due_total - scalar(sum(sysprof_ticks_total)) - sysprof_ticks_unexplained") == 0
    reasons = prometheus.query('sysprof_ticks_total{state="lost"}', time=at)
    assert len(reasons) >= 4 and all(labels["reason"] for labels, _ in reasons), reasons
    # what the sinks have of it
    left = value("sysprof_windows_taken_total - on (sink) sum by (sink) (sysprof_windows_total)"
                 " - on (sink) sum by (sink) (sysprof_spool_dropped_windows_total)"
                 " - on (sink) sysprof_spool_windows > 0 or vector(0)")
    assert left == 0, left


def check_cardinality(prometheus, text, before):
    """As many series as before the churn, as many as in the text, and they are the same."""
    at = time.time() - 2
    samples = prometheus.value("scrape_samples_scraped", time=at)
    assert samples == len(parse(text)), (samples, len(parse(text)))
    assert set(parse(text)) == set(parse(before)), set(parse(text)) ^ set(parse(before))
    for function in "min", "max":
        assert prometheus.value(f"{function}_over_time(scrape_samples_scraped[30m])", time=at) == samples
    assert prometheus.value("sum_over_time(scrape_series_added[30m])", time=at) == samples, "series were added later"
    services = prometheus.value("max_over_time(sysprof_services[30m])"), prometheus.value("min_over_time(sysprof_services[30m])")
    print(f"  {samples:.0f} series at each scrape, with {services[1]:.0f} to {services[0]:.0f} services")


# ---- alerts --------------------------------------------------------------------------------------

def test_alerts():
    """Each is tested, and a rule that is not there is missed."""
    checked = e.run("promtool", "check", "rules", RULES, check=0)
    text = e.read(RULES)
    head, *rules = re.split(r"(?m)^(?=      - alert: )", text)
    assert f"SUCCESS: {len(rules)} rules found" in checked.out and len(rules) >= 10, checked
    e.run("promtool", "test", "rules", RULE_TESTS, check=0)
    tests = e.read(RULE_TESTS).replace("../../../packaging/prometheus/", "")
    e.write(e.scratch("alerts.yaml"), tests)
    for i, rule in enumerate(rules):
        e.write(e.scratch("sysprof-alerts.yaml"), head + "".join(rules[:i] + rules[i + 1:]))
        without = e.run("promtool", "test", "rules", e.scratch("alerts.yaml"))
        name = re.match(r" *- alert: (\w+)", rule)[1]
        assert without.status == 1 and name in without.out + without.err, (name, without)


def check_alerts(prometheus, text):
    """They are loaded, every metric of them is there, and none fires for an agent that is well."""
    names = {name.split("{")[0] for name in parse(text)} | {"up"}
    (group,) = prometheus.send_request("rules")["groups"]
    assert len(group["rules"]) >= 10 and all(rule["health"] == "ok" for rule in group["rules"]), group
    for rule in group["rules"]:
        used = set(re.findall(r"\b(?:sysprof_\w+|up)\b", rule["query"]))
        assert used and used <= names, (rule["query"], used - names)
    firing = prometheus.query('ALERTS{alertstate="firing"}')
    # here a scrape is a second, and so a window is not sent in the first of them
    assert not firing, firing


# ---- dashboards ----------------------------------------------------------------------------------

def dashboard(name):
    return e.load_json(os.path.join(e.TOP, "packaging/grafana", name + ".json"))


def check_dashboard(name, source):
    """Ids, places, sources and variables; what a schema does not say. Its targets."""
    board = dashboard(name)
    assert board["uid"] == name and board["title"].startswith("sysprof") and "id" not in board
    variables = {v["name"]: v for v in board["templating"]["list"]}
    assert variables[source]["type"] == "datasource" and len(variables) == len(board["templating"]["list"])
    kind = variables[source]["query"]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)) >= 8 and board["schemaVersion"] >= 39
    taken, targets = set(), []
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, f"{panel['title']} lies over another panel"
        taken |= cells
        assert panel["type"] in ("row", "stat", "timeseries", "flamegraph") and panel["title"], panel
        if panel["type"] == "row":
            continue
        for thing in [panel, *panel["targets"]]:
            assert thing["datasource"] == {"type": kind, "uid": "${%s}" % source}, panel["title"]
        refs = [target["refId"] for target in panel["targets"]]
        assert refs and len(refs) == len(set(refs)), panel["title"]
        targets += [(panel, target) for target in panel["targets"]]
    known = set(variables) | {"__rate_interval"}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(board["panels"])))
    assert used <= known, used - known
    assert set(variables) - {source} <= used, f"variables that nothing uses: {set(variables) - used}"
    return board, targets


def check_agents_dashboard(prometheus, text):
    """Each query is answered; every series of the agent is in one of them."""
    board, targets = check_dashboard("sysprof-agent", "prometheus")
    names = {name.split("{")[0] for name in parse(text)}
    shown, empty = set(), []
    for panel, target in targets:
        expression = target["expr"].replace("$__rate_interval", "30s").replace("$instance", ".*")
        shown |= set(re.findall(r"\bsysprof_\w+", expression))
        rows = prometheus.query(expression)
        if not rows:
            empty.append(panel["title"])
        for label in re.findall(r"{{(\w+)}}", target.get("legendFormat", "")):
            assert all(label in labels for labels, _ in rows), (panel["title"], label, rows)
    assert shown <= names, shown - names
    unshown = names - shown
    print(f"  {len(targets)} queries show {len(shown)} of {len(names)} metrics; not: {sorted(unshown)}")
    # nothing was dropped
    assert set(empty) <= {"Windows by sink and result"}, empty
    (query,) = [v["query"]["query"] for v in board["templating"]["list"] if v["name"] == "instance"]
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", query).groups()
    assert prometheus.query(metric)[0][0][label]


def test_services_dashboard():
    """Its selectors have labels that the agent sends, and its types are those that it sends."""
    board, targets = check_dashboard("sysprof-services", "pyroscope")
    sent = {"service_name", "service_version", "node", "container", "namespace", "unit"}
    kinds = set()
    for panel, target in targets:
        assert target["profileTypeId"] == CPU and target["queryType"] == \
            ("profile" if panel["type"] == "flamegraph" else "metrics"), panel["title"]
        assert re.fullmatch(r'\{(\w+=~?"\$\w+",?)+\}', target["labelSelector"]), target
        assert set(re.findall(r"(\w+)=", target["labelSelector"])) | set(target["groupBy"]) <= sent, target
        kinds.add(panel["type"])
    assert kinds == {"timeseries", "flamegraph"}
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            query = variable["query"]
            assert query["type"] == "labelValue" and query["profileTypeId"] == CPU and query["labelName"] in sent, variable


# ---- all of it -----------------------------------------------------------------------------------

@e.long
def test_scraped():
    e.need_root()
    with standin.StandIn("pyroscope") as backend:
        sink = f"pyroscope:http://127.0.0.1:{backend.port}"
        with servers.Agent("--sink", sink, "--cpu", "0", "--memory", "0") as agent:
            agent.wait_until_it_answers()
            with servers.Prometheus(f"127.0.0.1:{agent.port}", RULES) as prometheus:
                programs = [spin(f"early-{i}", 0.4) for i in range(4)]
                agent.wait_for_windows(1)
                before = agent.metrics()
                check_text(before)
                for program in programs:
                    program.wait()
                # other programs, of services that were not there
                programs = [spin(f"late-{i}", 0.2) for i in range(12)]
                agent.wait_for_windows(2)
                for program in programs:
                    program.wait()
                # also at the moment of which the checks ask
                prometheus.wait_until(lambda: prometheus.query(f'sysprof_windows_total{{sink="{sink}",result="sent"}} > 0',
                                                               time=time.time() - 3), "a scrape with a sent window")
                assert prometheus.value("up") == 1
                text = agent.metrics()
                check_text(text)
                check_books(prometheus)
                check_cardinality(prometheus, text, before)
                check_alerts(prometheus, text)
                check_agents_dashboard(prometheus, text)
            assert agent.end() == 0, agent.said()


if __name__ == "__main__":
    e.main(globals())
