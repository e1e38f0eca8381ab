"""Turns what bench-spawn measured into numbers, a table and a picture. Pure functions: no I/O."""
import html

BAR = {'ward': ('bwrap + seccomp', 0.60, 0.45), 'ward with limits': ('runc', 0.60, None)}


def percentile(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def numbers(state, values):
    if not values:
        return {'state': state}
    values = sorted(v / 1000 for v in values)
    return {'state': state, 'n': len(values), 'min_us': round(values[0]),
            'p50_us': round(percentile(values, 0.5)),
            'p99_us': round(percentile(values, 0.99))}


def summarise(results):
    """{identity: {latency, parallel, rate, growth}} of raw nanoseconds to p50, p99, min, ratios and
    verdicts."""
    summary = {}
    for who, parts in results.items():
        rows = {name: numbers(*pair) for name, pair in parts['latency'].items()}
        for row in rows.values():
            for key, base in (('x_bare', 'bare'), ('x_bwrap_seccomp', 'bwrap + seccomp')):
                if 'p50_us' in row and 'p50_us' in rows.get(base, {}):
                    row[key] = round(row['p50_us'] / rows[base]['p50_us'], 2)
        verdicts = []
        for name, (peer, bar, goal) in BAR.items():
            if 'p50_us' in rows.get(name,
                                    {}) and 'p50_us' in rows.get(peer,
                                                                 {}) and rows[peer][
                                                                     'state'] == 'ok':
                ratio = round(rows[name]['p50_us'] / rows[peer]['p50_us'], 2)
                quiet = round(rows[name]['min_us'] / rows[peer]['min_us'], 2)
                verdicts.append({'what': name, 'peer': peer, 'ratio': ratio, 'ratio_of_min': quiet,
                                 'bar': bar, 'goal': goal, 'holds': ratio <= bar})
        summary[who] = {
            'latency': rows, 'verdicts': verdicts,
            'parallel': {n: {'state': s, 'failures': v[0] if v else None}
                         for n, (s, v) in parts['parallel'].items()},
            'rate': {n: {'failures': v[0], 'per_second': round(parts['starts'] * 1e9 / v[1])}
                     for n, (s, v) in parts['rate'].items() if s == 'ok'},
            'growth': {n: numbers(*pair) for n, pair in parts.get('growth', {}).items()}}
    summary['rounds'] = max(len(p['latency']['bare'][1]) for p in results.values())
    return summary


def identities(summary):
    return [who for who in summary if isinstance(summary[who], dict)]


def text_one(who, part):
    lines = [f'as {who}: spawn to reaped, static true, interleaved',
             f'  {"":18} {"p50 us":>9} {"p99 us":>9} {"min us":>9} {"n":>5} {"x bare":>8} '
             f'{"x bwrap+seccomp":>16}']
    for name, row in part['latency'].items():
        if 'p50_us' not in row or row['state'] != 'ok':
            lines.append(f'  {name:18} {"does not run here: " + row["state"]}')
            continue
        lines.append(f'  {name:18} {row["p50_us"]:9} {row["p99_us"]:9} {row["min_us"]:9} '
                     f'{row["n"]:5} '
                     f'{row.get("x_bare", 0):8.2f} {row.get("x_bwrap_seccomp", 0):16.2f}')
    for v in part['verdicts']:
        goal = f', goal {v["goal"]:.2f}' if v['goal'] else ''
        lines.append(f'  {v["what"]} / {v["peer"]}: {v["ratio"]:.2f} by p50, '
                     f'{v["ratio_of_min"]:.2f} by min (bar {v["bar"]:.2f}{goal}): '
                     f'{"holds" if v["holds"] else "MISSED"}')
    for name, row in part['parallel'].items():
        lines.append(f'  20 parallel starts in one directory, {name}: '
                     + (f'{row["failures"]} failed' if row['state'] == 'ok' else row['state']))
    for name, row in part['rate'].items():
        lines.append(f'  starts per second, 4 at a time, {name}: {row["per_second"]}'
                     + (f' ({row["failures"]} failed)' if row['failures'] else ''))
    for name, row in part['growth'].items():
        lines.append(f'  ward in a workspace of {name}: '
                     + (f'p50 {row["p50_us"]} us' if 'p50_us' in row else row['state']))
    return '\n'.join(lines)


def text(summary):
    return '\n\n'.join(text_one(who, summary[who]) for who in identities(summary))


def sound(summary):
    """ward ran, and no parallel start failed. Whether a bar was missed is for a person to judge:
    machines are noisy."""
    for who in identities(summary):
        part = summary[who]
        if any(part['latency'][n]['state'] != 'ok' for n in ('ward', 'ward with limits')):
            return False
        if any(row['state'] != 'ok' or row['failures'] for row in part['parallel'].values()):
            return False
    return True


def svg(summary):
    """One panel of horizontal bars per identity: p50 as the bar, p99 as a thin line, on a linear
    scale to the longest p50."""
    bars, y = [], 40
    rows = [(who, n, r) for who in identities(summary) for n, r in summary[who]['latency'].items()
            if r.get('state') == 'ok']
    longest = max((r['p50_us'] for _, _, r in rows), default=1)
    scale = 480 / longest
    last = None
    for who, name, row in rows:
        if who != last:
            y += 16
            bars.append(f'<text x="10" y="{y + 12}" font-weight="bold">as '
                        f'{html.escape(who)}</text>')
            y += 24
            last = who
        colour = '#2b6cb0' if name.startswith('ward') else '#a0aec0'
        width, whisker = row['p50_us'] * scale, min(row['p99_us'] * scale, 520)
        bars.append(f'<text x="150" y="{y + 12}" text-anchor="end">{html.escape(name)}</text>'
                    f'<rect x="160" y="{y + 2}" width="{width:.1f}" height="13" fill="{colour}"/>'
                    f'<line x1="{160 + width:.1f}" x2="{160 + whisker:.1f}" y1="{y + 8.5}" '
                    f'y2="{y + 8.5}" stroke="{colour}"/>'
                    f'<text x="{166 + max(width, whisker):.1f}" '
                    f'y="{y + 12}">{row["p50_us"] / 1000:.2f} ms'
                    f' ({row.get("x_bare", 0):.1f}x bare)</text>')
        y += 19
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="820" height="{y + 20}" '
            'font-family="sans-serif" font-size="12">'
            f'<rect width="100%" height="100%" fill="white"/>'
            '<text x="10" y="22" font-size="15">Start to reaped of a static true: bar p50, line '
            f'to p99, {summary["rounds"]} rounds, interleaved</text>'
            + ''.join(bars) + '</svg>\n')
