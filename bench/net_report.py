"""Turns what the network's bench measured into numbers, a table and a picture. Pure functions: no
I/O."""
import html
import statistics
import textwrap

# key in a summary, heading, unit, whether more is better, how a number is written
COLUMNS = [("down", "download", "MiB/s", True, "{:.0f}"), ("up", "upload", "MiB/s", True, "{:.0f}"),
           ("ttfb", "first byte", "µs", False, "{:.0f}"),
           ("rate", "connections", "/s", True, "{:.0f}"),
           ("cpu", "relay CPU", "s/GiB", False, "{:.2f}")]
# what, of which way, beside which, more is better, bar, goal
BARS = [("first byte", "ttfb", "direct", False, 2.8, 2.3),
        ("connections a second", "rate", "direct", True, 0.45, 0.6),
        ("download", "down", "direct", True, 0.55, None),
        ("relay CPU", "cpu", "haproxy", False, 0.6, None),
        ("download", "down", "srt", True, 5, None), ("upload", "up", "srt", True, 5, None),
        ("connections a second", "rate", "srt", True, 10, None)]


def summarise(results):
    """{way: {word: [numbers]}} to medians, the best, and ratios of medians to the direct way."""
    ways = {}
    for name, found in results.items():
        row = {"note": found["note"], "control": found["control"], "failed": found["failed"]}
        for key, _, _, more, _ in COLUMNS:
            if found[key]:
                row[key] = round(statistics.median(found[key]), 3)
                row[f"{key}_best"] = round((max if more else min)(found[key]), 3)
        ways[name] = row
    for row in ways.values():
        for key, *_ in COLUMNS:
            if key in row and key in ways.get("direct", {}):
                row[f"{key}_x"] = round(row[key] / ways["direct"][key], 3)
    return ways


def holds(number, more, bar):
    return number >= bar if more else number <= bar


def bars(summary):
    rows, ways = [], summary["ways"]
    for what, key, peer, more, bar, goal in BARS:
        here, there = ways.get("ward", {}), ways.get(peer, {})
        if key in here and key in there:
            ratio, best = here[key] / there[key], here[f"{key}_best"] / there[f"{key}_best"]
            rows.append({"what": f"{what}, of {peer}'s", "number": round(ratio, 2),
                         "of_best": round(best, 2), "unit": "x", "more": more, "bar": bar,
                         "goal": goal, "holds": holds(ratio, more, bar)})
    start, memory = summary["start"], summary["memory"]
    absolute = [("start, more than without a network", start["with_ms"] - start["without_ms"], "ms",
                 1.2),
                ("the gateway's processes", memory["processes"], "", 2)]
    if "pss_bytes" in memory:
        absolute += [("the gateway's memory (PSS)", memory["pss_bytes"] / 1e6, "MB", 4),
                     ("an idle connection", memory["bytes_per_idle"] / 1024, "KiB", 4)]
    for what, number, unit, bar in absolute:
        rows.append({"what": what, "number": round(number, 2), "unit": unit, "more": False,
                     "bar": bar, "goal": None, "holds": number <= bar})
        if unit == "ms":
            rows[-1]["of_best"] = round(start["with_min_ms"] - start["without_min_ms"], 2)
    return rows


def sound(summary):
    """ward and the direct way were measured. Whether a bar was missed is for a person to judge:
    machines are noisy."""
    return all(key in summary["ways"].get(name, {}) for name in ("direct", "ward")
               for key in ("down", "up", "ttfb", "rate"))


def where(summary):
    c = summary["conditions"]
    controls = sorted({row["control"] for row in summary["ways"].values() if row["control"]})
    return (f"{c['processors']} processors ({c['processor']}) shared by client, server and relay; "
            f"Linux {c['kernel']}; {', '.join(controls)}; "
            f"{c['as']}; {c['rounds']} rounds, interleaved; load before: {c['load_before']:.1f}" +
            (f"; {c['note']}" if c.get("note") else ""))


def text(summary):
    lines = ["the network: medians, and beside them the ratio to the direct way",
             "  " + where(summary),
             "  " + " " * 19 + "".join(f"{heading + ' ' + unit:>23}"
                                       for _, heading, unit, _, _ in COLUMNS)]
    for name, row in summary["ways"].items():
        cells = ""
        for key, _, _, _, form in COLUMNS:
            number = form.format(row[key]) if key in row else "-"
            cells += f"{number:>15}" + (f"{row[f'{key}_x']:7.2f}x" if f"{key}_x" in row
                                        else " " * 8)
        lines.append(f"  {name:19}{cells}")
        lines += [f"  {'':19}  failed: {why}" for why in row["failed"]]
    lines += [f"  {name:19}  absent; get it with: {how}" for name, how in summary["absent"].items()]
    for bar in summary["bars"]:
        of_best = f" ({bar['of_best']} of the best)" if "of_best" in bar else ""
        goal = f", goal {bar['goal']}" if bar["goal"] else ""
        lines.append(f"  {bar['what']:40} {bar['number']:8.2f} {bar['unit']:4}{of_best:22} bar "
                     f"{'>=' if bar['more'] else '<='} {bar['bar']}{goal}: "
                     f"{'holds' if bar['holds'] else 'MISSED'}")
    if "pss_bytes" not in summary["memory"]:
        lines.append("  the gateway's memory: not measured, only root may look at it")
    return "\n".join(lines)


# -- the picture: a panel of bars for each column

WIDTH, PANEL, LABEL, BAR, ROW, TOP = 1000, 490, 130, 210, 20, 104
COLOURS = {"ward": "#1d4ed8", "ward, no nf_tables": "#7c9cf0", "direct": "#334155"}


def scale_of(numbers, more):
    """What the longest bar stands for. A bad one that dwarfs the rest is cut, and shown so."""
    numbers = sorted(numbers)
    if not numbers:
        return 1
    return (numbers[-1] if more else min(numbers[-1], 3 * statistics.median(numbers))) or 1


def panel(x, y, summary, key, heading, unit, more, form):
    rows = [(name, row) for name, row in summary["ways"].items() if key in row]
    longest = scale_of([row[key] for _, row in rows], more)
    out = [f'<text x="{x}" y="{y}" class="h">{heading}, {unit}</text>'
           f'<text x="{x + PANEL - 30}" y="{y}" class="n" '
           f'text-anchor="end">{"more" if more else "less"} is better</text>']
    for i, (name, row) in enumerate(rows):
        top, width, cut = y + 12 + i * ROW, max(min(row[key] / longest, 1) * BAR,
                                                1.5), row[key] > longest
        times = (f' <tspan class="n">{row[f"{key}_x"]:.2f}x</tspan>' if f"{key}_x" in row
                 and name != "direct" else "")
        weight = ' font-weight="600"' if name == "ward" else ""
        out.append(f'<text x="{x + LABEL - 8}" y="{top + 12}" '
                   f'text-anchor="end"{weight}>{html.escape(name)}</text>'
                   f'<rect x="{x + LABEL}" y="{top + 2}" width="{width:.1f}" height="{ROW - 6}" '
                   f'rx="2" fill="{COLOURS.get(name, "#cbd5e1")}"/>'
                   + (f'<path d="M{x + LABEL + width - 16:.1f} {top + ROW - 3} l6 -16 h5 l-6 16 z" '
                      'fill="#ffffff"/>' if cut else "") +
                   f'<text x="{x + LABEL + width + 6:.1f}" '
                   f'y="{top + 12}"{weight}>{form.format(row[key])}{times}</text>')
    return "".join(out)


def verdicts(x, y, summary):
    out = [f'<text x="{x}" y="{y}" class="h">what ward promises</text>']
    for i, bar in enumerate(summary["bars"]):
        top = y + 24 + i * ROW
        colour = "#15803d" if bar["holds"] else "#b91c1c"
        out.append(f'<circle cx="{x + 6}" cy="{top - 4}" r="4" fill="{colour}"/><text x="{x + 18}" '
                   f'y="{top}">{html.escape(bar["what"])}</text>'
                   f'<text x="{x + 330}" y="{top}" text-anchor="end" '
                   f'font-weight="600">{bar["number"]:g} {bar["unit"]}</text>'
                   f'<text x="{x + 345}" y="{top}" '
                   f'class="n">{"at least" if bar["more"] else "at most"} {bar["bar"]:g}</text>')
    return "".join(out)


def svg(summary):
    tall = 12 + max(len(summary["ways"]), len(summary["bars"])) * ROW + 34
    under = "".join(f'<text x="24" y="{52 + 17 * i}" class="n">{html.escape(line)}</text>'
                    for i, line in enumerate(textwrap.wrap(where(summary), 140)))
    cells = [panel(24 + i % 2 * PANEL, TOP + i // 2 * tall, summary, *column)
             for i, column in enumerate(COLUMNS)]
    height = TOP + 3 * tall + 8
    missing = f'absent: {", ".join(summary["absent"])}' if summary["absent"] else ""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 '
            f'0 {WIDTH} {height}" '
            'font-family="system-ui, sans-serif" font-size="12" fill="#0f172a">'
            '<style>.h{font-size:14px;font-weight:600}.n{fill:#64748b}</style><rect width="100%" '
            'height="100%" fill="#ffffff"/>'
            '<text x="24" y="32" font-size="18" font-weight="600">A connection through '
            'ward&#8217;s gateway, and through other relays</text>'
            + under + "".join(cells) + verdicts(24 + PANEL, TOP + 2 * tall, summary)
            + f'<text x="24" y="{height - 14}" class="n">{html.escape(missing)}</text></svg>\n')
