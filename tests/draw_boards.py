"""Draws the boards as pictures: one SVG each, from what a real Prometheus answered.

Usage: draw_boards.py ANSWERS FOLDER. ANSWERS is what the test of the boards keeps (tests/pictures
asks it to); what is drawn where is read from dashboards/*.json. Nothing but Python's own library.
"""

import json
import math
import re
import sys
from datetime import datetime, timezone
from pathlib import Path
from xml.sax.saxutils import escape

# Which histograms are drawn: the heatmaps of a stream are finer in the native form.
FORMS = {"overview": "classic", "stream": "native", "why": "classic", "health": "classic"}
COLUMN, LINE, GAP, TOP = 50, 27, 8, 56
WIDTH = 24 * COLUMN + GAP
FONT = "font-family='Inter,Helvetica,Arial,sans-serif'"
INK, SOFT, RULE, GROUND, CARD = "#1f2933", "#66727f", "#e3e8ee", "#f2f4f7", "#ffffff"
PALETTE = ["#3b7ddd", "#e0862c", "#2f9e5b", "#c94a4a", "#8a63c9", "#17a2b8", "#b5952c", "#d9589e",
           "#5a6b7b", "#7cb342", "#a1664a", "#4054b2"]
NAMED = {"green": "#2f9e5b", "red": "#c94a4a", "orange": "#e0862c", "yellow": "#d6a92b",
         "blue": "#3b7ddd", "purple": "#8a63c9", "text": SOFT, "gray": SOFT}


def colour(name):
    for known, value in NAMED.items():
        if known in (name or ""):
            return value
    return name or SOFT


def number(value, places=3):
    text = f"{value:.{places}g}"
    return text if "e" not in text else f"{value:,.0f}"


def shown(value, unit, places=3):
    """A value as Grafana would say it in this unit."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "never"
    if unit in ("percentunit", "percent"):
        share = value * (100 if unit == "percentunit" else 1)
        return f"{share:.4g} %"
    if unit == "s":
        size = abs(value)
        for limit, factor, name in [(1e-3, 1e6, "µs"), (1, 1e3, "ms"), (120, 1, "s"),
                                    (7200, 1 / 60, "min"), (172800, 1 / 3600, "h")]:
            if size < limit or size == 0:
                return f"{number(value * factor, places)} {name}" if size else "0 s"
        return f"{number(value / 86400, places)} d"
    if unit == "bytes":
        for name in ["B", "KiB", "MiB", "GiB"]:
            if abs(value) < 1024 or name == "GiB":
                return f"{number(value, places)} {name}"
            value /= 1024
    suffix = {"reqps": " req/s", "cps": "/s"}.get(unit, "")
    for limit, name in [(1e9, "G"), (1e6, "M"), (1e4, "k")]:
        if abs(value) >= limit:
            factor = 1e3 if name == "k" else limit
            return f"{number(value / factor, places)} {name}{suffix}"
    return f"{number(value, places + 1)}{suffix}"


def text(x, y, words, size=11, fill=INK, anchor="start", weight=400):
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{fill}' "
            f"text-anchor='{anchor}' font-weight='{weight}'>{escape(str(words))}</text>")


def rect(x, y, width, height, fill, more=""):
    return (f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' "
            f"fill='{fill}' {more}/>")


def fitting(words, width, size=11):
    most = max(3, int(width / (size * 0.56)))
    return words if len(words) <= most else words[: most - 1] + "…"


def legend_of(target, metric):
    template = target.get("legendFormat") or ""
    if not template or template == "__auto":
        return ", ".join(f"{key}={value}" for key, value in metric.items() if key != "__name__")
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: metric.get(found[1], ""), template).strip()


def overrides(panel, name):
    """What the panel says about the series called `name`, by property."""
    properties = {}
    for override in panel["fieldConfig"].get("overrides", []):
        matcher = override["matcher"]
        matches = matcher["options"] == name
        if matcher["id"] == "byRegexp":
            matches = re.search(matcher["options"].strip("/"), name) is not None
        if matches:
            properties.update({one["id"]: one["value"] for one in override["properties"]})
    return properties


def steps(low, high, unit, most=5):
    """Round values from `low` to `high`."""
    if not high > low:
        high = low + 1
    raw = (high - low) / most
    if unit == "bytes":
        size = 2 ** math.ceil(math.log2(raw))
    else:
        size = 10 ** math.floor(math.log10(raw))
        size *= next(factor for factor in (1, 2, 2.5, 5, 10) if raw <= factor * size)
    first = math.ceil(low / size - 1e-9)
    return [index * size for index in range(first, int(high / size + 1e-9) + 1)]


def labelled(values, unit):
    """The values with labels, precise enough to tell them apart."""
    for places in (3, 4, 5, 6, 7):
        labels = [shown(value, unit, places) for value in values]
        if len(set(labels)) == len(labels):
            break
    return list(zip(values, labels))


class Plot:
    """The inside of a panel with axes."""

    def __init__(self, box, span, values):
        x, y, width, height = box
        self.left, self.right, self.top, self.bottom = x + 60, x + width - 10, y + 30, y + height - 44
        self.start, self.end = span
        self.low, self.high = values

    def x(self, at):
        return self.left + (at - self.start) / (self.end - self.start) * (self.right - self.left)

    def y(self, value):
        share = (value - self.low) / ((self.high - self.low) or 1)
        return self.bottom - min(max(share, -0.02), 1.02) * (self.bottom - self.top)

    def axes(self, unit, labels=None):
        out = []
        for value in labels or labelled(steps(self.low, self.high, unit), unit):
            at = self.y(value[0])
            out.append(f"<path d='M{self.left:.0f} {at:.1f}H{self.right:.0f}' stroke='{RULE}'/>")
            out.append(text(self.left - 5, at + 3.5, value[1], 9.5, SOFT, "end"))
        hour = 3600
        first = math.ceil(self.start / (4 * hour)) * 4 * hour
        for at in range(int(first), int(self.end) + 1, 4 * hour):
            x = self.x(at)
            clock = datetime.fromtimestamp(at, timezone.utc).strftime("%H:%M")
            out.append(f"<path d='M{x:.0f} {self.bottom:.0f}v3' stroke='{SOFT}'/>")
            out.append(text(x, self.bottom + 13, clock, 9.5, SOFT, "middle"))
        out.append(f"<path d='M{self.left:.0f} {self.bottom:.0f}H{self.right:.0f}' stroke='{SOFT}'/>")
        return out


def path(plot, points, step):
    """A line that breaks where a step is missing."""
    parts, before = [], None
    for at, value in points:
        gap = before is None or at - before > 1.5 * step
        parts.append(f"{'M' if gap else 'L'}{plot.x(at):.0f} {plot.y(value):.1f}")
        before = at
    return "".join(parts)


def samples(series):
    pairs = ((float(at), float(value)) for at, value in series.get("values", []))
    return [(at, value) for at, value in pairs if not math.isnan(value)]


def lines_of(panel, answers):
    """The series of a panel: name, points, colour and the rest of what is said about them."""
    found = []
    for index, target in enumerate(panel["targets"]):
        for series in answers.get(index, []):
            name = legend_of(target, series["metric"]) or panel["title"]
            found.append((name, samples(series), overrides(panel, name)))
    found = [one for one in found if one[1]]
    coloured = []
    for index, (name, points, said) in enumerate(found):
        fixed = said.get("color", {}).get("fixedColor")
        coloured.append((name, points, colour(fixed) if fixed else PALETTE[index % len(PALETTE)], said))
    return coloured


def timeseries(panel, box, answers, span):
    lines = lines_of(panel, answers)
    defaults = panel["fieldConfig"]["defaults"]
    unit = defaults.get("unit", "none")
    values = [value for _, points, _, _ in lines for _, value in points if not math.isinf(value)]
    if not values:
        return [text(box[0] + box[2] / 2, box[1] + box[3] / 2, "no data in this day", 12, SOFT, "middle")]
    low = min(values + [defaults["min"]] if "min" in defaults else values)
    high = max(values + [defaults["max"]] if "max" in defaults else values)
    if high == low:
        high = low + (abs(low) or 1)
    if "max" not in defaults:
        high += (high - low) * 0.05
    plot = Plot(box, (span[0], span[1]), (low, high))
    out = plot.axes(unit)
    known = {name: points for name, points, _, _ in lines}
    for name, points, stroke, said in lines:
        below = known.get(said.get("custom.fillBelowTo"))
        if below:
            both = points + below[::-1]
            area = "M" + "L".join(f"{plot.x(at):.0f} {plot.y(value):.1f}" for at, value in both)
            out.append(f"<path d='{area}Z' fill='{stroke}' fill-opacity='.16'/>")
        if said.get("custom.lineWidth") == 0:
            continue
        dash = "stroke-dasharray='5 4'" if said.get("custom.lineStyle", {}).get("fill") == "dash" else ""
        drawn = path(plot, points, span[2])
        out.append(f"<path d='{drawn}' fill='none' stroke='{stroke}' stroke-width='1.3' "
                   f"stroke-linecap='round' {dash}/>")
    return out + legend([(name, stroke) for name, _, stroke, _ in lines], box)


def legend(entries, box):
    out, x, y = [], box[0] + 12, box[1] + box[3] - 17
    right, rows = box[0] + box[2] - 10, 0
    for index, (name, fill) in enumerate(entries):
        words = fitting(name, 160, 10)
        width = 18 + len(words) * 5.6
        more = 70 if rows == 1 and index + 1 < len(entries) else 0
        if x + width + more > right:
            if rows == 1:
                out.append(text(x, y, f"and {len(entries) - index} more", 10, SOFT))
                break
            rows, x, y = 1, box[0] + 12, y + 12
        out.append(rect(x, y - 7, 10, 3, fill, "rx='1.5'"))
        out.append(text(x + 14, y - 1, words, 10, SOFT))
        x += width + 6
    return out


def cells(panel, answers):
    """The cells of a heatmap as (time, lower bound, upper bound, count)."""
    found = []
    for index, target in enumerate(panel["targets"]):
        series = answers.get(index, [])
        for one in series:
            for at, histogram in one.get("histograms", []):
                found += [(float(at), float(low), float(high), float(count))
                          for _, low, high, count in histogram.get("buckets", []) if float(high) > 0]
        bounds = sorted((float(one["metric"]["le"]), dict(samples(one)))
                        for one in series if "le" in one["metric"])
        for (low, below), (high, upto) in zip(bounds, bounds[1:]):
            if not math.isinf(high):
                found += [(at, low, high, count - below.get(at, 0.0)) for at, count in upto.items()]
    return [cell for cell in found if cell[3] > 1e-9]


def heatmap(panel, box, answers, span):
    found = cells(panel, answers)
    if not found:
        return [text(box[0] + box[2] / 2, box[1] + box[3] / 2, "no data in this day", 12, SOFT, "middle")]
    low = math.log(max(min(cell[1] for cell in found), 1e-6))
    high = math.log(max(cell[2] for cell in found))
    plot = Plot(box, (span[0], span[1]), (low, high))
    exponents = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 4, 6, 8), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)):
        marks = [factor * 10.0 ** exponent for exponent in exponents for factor in factors]
        marks = [mark for mark in marks if low <= math.log(mark) <= high]
        if len(marks) >= 4:
            break
    out = plot.axes("s", [(math.log(mark), shown(mark, "s")) for mark in marks])
    most = max(cell[3] for cell in found)
    shades = {}
    width = max(plot.x(span[0] + span[2]) - plot.left, 0.8)
    for at, lower, upper, count in found:
        shade = min(15, int((count / most) ** 0.5 * 16))
        y0, y1 = plot.y(math.log(upper)), plot.y(math.log(max(lower, 1e-6)))
        x = max(plot.x(at) - width, plot.left)
        shades.setdefault(shade, []).append(f"M{x:.1f} {y0:.1f}h{width:.1f}V{y1:.1f}h-{width:.1f}z")
    for shade, parts in sorted(shades.items()):
        out.append(f"<path d='{''.join(parts)}' fill='{orange(shade / 15)}'/>")
    x, y = box[0] + 60, box[1] + box[3] - 20
    out += [rect(x + 6 * index, y, 6, 7, orange(index / 15)) for index in range(16)]
    return out + [text(x + 102, y + 7, f"requests in a cell, up to {most:.3g}", 10, SOFT)]


def orange(share):
    low, middle, high = (254, 237, 216), (241, 133, 44), (127, 39, 4)
    a, b, part = (low, middle, share * 2) if share < 0.5 else (middle, high, share * 2 - 1)
    return "#" + "".join(f"{round(one + (two - one) * part):02x}" for one, two in zip(a, b))


def stat(panel, box, answers, span):
    defaults = panel["fieldConfig"]["defaults"]
    values = [(legend_of(target, one["metric"]), float(one["value"][1]))
              for index, target in enumerate(panel["targets"]) for one in answers.get(index, [])
              if "value" in one]
    if not values:
        return [text(box[0] + 12, box[1] + 19, panel["title"], 11.5, INK, weight=600),
                text(box[0] + box[2] / 2, box[1] + box[3] - 34, "–", 26, SOFT, "middle")]
    name, value = values[0]
    fill = CARD
    for step in defaults.get("thresholds", {}).get("steps", []):
        if step["value"] is None or value >= step["value"]:
            fill = colour(step["color"])
    words = shown(value, defaults.get("unit", "none"))
    if panel["options"].get("textMode") == "name":
        words = name
    colourful = panel["options"].get("colorMode") == "background" and fill != SOFT
    x, y, width, height = box
    out = [rect(x + 1, y + 1, width - 2, height - 2, fill, "rx='5'")] if colourful else []
    ink = "#ffffff" if colourful else INK
    out.append(text(x + 12, y + 19, panel["title"], 11.5, ink, weight=600))
    return out + [text(x + width / 2, y + height - 32, words, 27, ink, "middle", 600)]


def table(panel, box, answers, span):
    unit = panel["fieldConfig"]["defaults"].get("unit", "none")
    rename = {}
    hidden = set()
    for change in panel.get("transformations", []):
        rename.update(change.get("options", {}).get("renameByName", {}))
        hidden |= {key for key, off in change.get("options", {}).get("excludeByName", {}).items() if off}
    rows, columns, labels = {}, [], []
    for index, target in enumerate(panel["targets"]):
        series = answers.get(index)
        if not series:
            continue
        column = rename.get(f"Value #{target['refId']}", target.get("legendFormat") or "value")
        if column not in columns:
            columns.append(column)
        for one in series:
            metric = {key: value for key, value in one["metric"].items() if key not in hidden}
            labels += [key for key in metric if key not in labels]
            rows.setdefault(tuple(sorted(metric.items())), {})[column] = float(one["value"][1])
    if not rows:
        return [text(box[0] + box[2] / 2, box[1] + box[3] / 2, "empty", 12, SOFT, "middle")]
    x, y, width, height = box
    names = labels + columns
    each = (width - 24) / len(names)
    out = []
    for place, name in enumerate(names):
        said = rename.get(name, name)
        out.append(text(x + 14 + place * each, y + 44, fitting(said, each - 8, 10.5), 10.5, SOFT, weight=600))
    for line, (metric, values) in enumerate(sorted(rows.items())):
        at = y + 66 + line * 21
        if at > y + height - 6:
            break
        out.append(f"<path d='M{x + 12} {at - 15:.0f}H{x + width - 12}' stroke='{RULE}'/>")
        metric = dict(metric)
        for place, name in enumerate(names):
            if name in labels:
                words = metric.get(name, "")
            else:
                own = overrides(panel, name).get("unit", unit)
                words = shown(values[name], own) if name in values else "–"
            out.append(text(x + 14 + place * each, at, fitting(words, each - 8), 11))
    return out


DRAWN = {"timeseries": timeseries, "heatmap": heatmap, "stat": stat, "table": table}


def board(name, model, answers, span):
    height = TOP + max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in model["panels"]) * LINE + GAP
    day = datetime.fromtimestamp(span[1], timezone.utc).strftime("%F")
    out = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' "
           f"height='{height}' {FONT}>", rect(0, 0, WIDTH, height, GROUND),
           text(GAP + 4, 27, model["title"], 19, INK, weight=600),
           text(GAP + 4, 45, f"the 24 hours before {day}, simulated; every panel from its own query, "
                f"{FORMS[name]} histograms; times are UTC", 11, SOFT)]
    for index, panel in enumerate(model["panels"]):
        place = panel["gridPos"]
        box = (GAP + place["x"] * COLUMN, TOP + place["y"] * LINE,
               place["w"] * COLUMN - GAP, place["h"] * LINE - GAP)
        if panel["type"] == "row":
            out.append(text(box[0] + 4, box[1] + 18, panel["title"], 13, INK, weight=600))
            continue
        out.append(rect(*box, CARD, f"rx='5' stroke='{RULE}'"))
        if panel["type"] != "stat":
            out.append(text(box[0] + 12, box[1] + 19, panel["title"], 11.5, INK, weight=600))
        out += DRAWN[panel["type"]](panel, box, answers.get(index, {}), span)
    return "\n".join(out + ["</svg>", ""])


def main():
    kept = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2])
    root = Path(__file__).resolve().parent.parent
    for name, form in FORMS.items():
        model = json.loads((root / "dashboards" / f"{name}.json").read_text())
        answers = {}
        for one in kept["answers"]:
            if one["board"] == name and one["histograms"] == form:
                answers.setdefault(one["panel"], {})[one["query"]] = one["result"]
        drawn = board(name, model, answers, (kept["start"], kept["end"], 300))
        (folder / f"board-{name}.svg").write_text(drawn)
        print(f"{folder / f'board-{name}.svg'}: {len(model['panels'])} panels, {len(drawn)} bytes")


main()
