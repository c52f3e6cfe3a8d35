# SPDX-License-Identifier: BSD-2-Clause
"""Viewers that live in a browser, with a file of ours in them: speedscope and DevTools' own Performance panel."""
import base64
import json
import os
import time

from libconsumers import CACHE, node

DEVTOOLS = "devtools://devtools/bundled/devtools_app.html?panel=timeline"
PANEL = "(await import('devtools://devtools/bundled/panels/timeline/timeline.js')).TimelinePanel.TimelinePanel.instance()"
READY = f"(async () => !!{PANEL})()"
LOAD = """
(async () => {{
	const bytes = Uint8Array.from(atob("{data}"), c => c.charCodeAt(0));
	// the type that a browser gives a file that somebody chooses
	const type = {name}.endsWith('.gz') ? 'application/gzip' : '';
	await ({panel}).loadFromFile(new File([bytes], {name}, {{type}}));
	return true;
}})()
"""
# text of the panel, through all shadow roots
TEXT = """
(() => {
	const words = [], walk = node => {
		if (node.nodeType === Node.TEXT_NODE && node.textContent.trim() && !['STYLE', 'SCRIPT'].includes(node.parentNode?.nodeName))
			words.push(node.textContent.trim());
		for (const child of node.childNodes) walk(child);
		if (node.shadowRoot) walk(node.shadowRoot);
	};
	walk(document.body);
	return words.join('\\n');
})()
"""


def encoded(path):
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()


def speedscope(browser, path, scratch):
    """A page of speedscope with the file in it."""
    node()
    index = os.path.join(CACHE, "node_modules/speedscope/dist/release/index.html")
    script = os.path.join(scratch, os.path.basename(path) + ".js")
    with open(script, "w", encoding="ascii") as file:
        file.write(f"speedscope.loadFileFromBase64({json.dumps(os.path.basename(path))}, {json.dumps(encoded(path))})")
    page = browser.page(f"file://{index}#localProfilePath={script}")
    page.wait("document.title.endsWith(' - speedscope')", 60)
    return page


def devtools(browser, path):
    """DevTools' Performance panel with the file in it."""
    page = browser.page(DEVTOOLS)
    page.wait(READY, 60)
    page.evaluate(LOAD.format(panel=PANEL, data=encoded(path), name=json.dumps(os.path.basename(path))), timeout=120)
    return page


def shown_text(page):
    return page.evaluate(TEXT)


def devtools_tracks(page):
    """[(name, depth)] of the panel's tracks, from its own list of what it draws."""
    groups = f"(async () => ({PANEL}).getFlameChart().getMainDataProvider().timelineData().groups)()"
    page.wait(f"{groups}.then(groups => groups.length > 0)", 60)
    return [tuple(row) for row in page.evaluate(
        f"{groups}.then(groups => groups.map(g => [g.name, g.style.nestingLevel ?? 0]))")]


def show_tracks(page, wanted):
    """Open the tracks with these numbers, for a picture."""
    page.evaluate(f"(async () => {{ const chart = ({PANEL}).getFlameChart().getMainFlameChart();"
                  f" for (const i of {wanted}) chart.toggleGroupExpand(i); }})()")


def tidy(page):
    """Close what lies over the tracks and beside them, and go to the first of them: for a picture."""
    page.key("Escape")
    time.sleep(1)
    page.evaluate(f"""(async () => {{
        const find = node => {{
            if (node.getAttribute?.('aria-label') === 'Hide sidebar' || node.getAttribute?.('title') === 'Hide sidebar') return node;
            for (const child of [...node.children ?? [], ...node.shadowRoot?.children ?? []]) {{
                const found = find(child);
                if (found) return found;
            }}
        }};
        find(document.body)?.click();
    }})()""")
    page.mouse("mouseWheel", 700, 300, deltaX=0, deltaY=-9000, modifiers=8)
    time.sleep(1)


def zoom_in(page, x, y, times):
    page.click(x, y)
    page.mouse("mouseMoved", x, y)
    for _ in range(times):
        page.key("w", code="KeyW")
        time.sleep(0.3)
    time.sleep(1)
