#!/usr/bin/env python3
"""Says in plain words what a run of the sample agent came to: summary.py REPORT PROJECT STATUS

Exits with 0 only if everything that the agent tried was contained and its honest work is there.
What this host cannot give, as ward's report says, is named and does not count: in a container whose
/proc is masked, the kernel makes no other.
"""
import json
import pathlib
import sys


def contained(report, project):
    """(what, whether it held) pairs, judged from the host's side wherever that can be."""
    outcomes = json.loads((project / 'outcomes.json').read_text(encoding='utf-8'))
    by_agent = [(o['what'], o['blocked']) for o in outcomes if not o['what'].startswith('plant')]
    moved = ' '.join(report.get('quarantine', []))
    return by_agent + [
        ('the git hook is not in the project', not (project / '.git/hooks/pre-commit').exists()),
        ('the shell start file is not in the project' + (', it lies in the quarantine'
                                                         if '.envrc' in moved else ''),
         not (project / '.envrc').exists()),
    ]


def not_here(report, what):
    """Why the host cannot hold this attempt, in the report's words; '' where it can."""
    note = report['layers'].get('masked proc', {}).get('note') or ''
    return note if what == 'look at other processes' and 'refused a fresh /proc' in note else ''


def main():
    report = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding='utf-8'))
    project, status = pathlib.Path(sys.argv[2]), int(sys.argv[3])
    if 'refused' in report:
        print('ward refused to start it: {what}: {why}\n  remedy: {remedy}'.format(
            **report['refused']))
        return 1
    print(f'\nWhat came of it (exit {status}, {report["duration_ms"]} ms, '
          f'peak memory {report["memory_peak_bytes"] / 2**20:.1f} MiB)')
    rows = contained(report, project)
    lacks = {what: not_here(report, what) for what, held in rows if not held}
    for what, held in rows:
        word = 'contained' if held else 'not here' if lacks[what] else 'NOT HELD'
        print(f'  {word:9}  {what}' + (f': {lacks[what]}' if lacks.get(what) else ''))
    worked = (project / 'report.txt').exists()
    print(f'  {"kept" if worked else "LOST":9}  what it was asked to do: report.txt')
    layers = report['layers']
    print('  layers in force:  ' + ', '.join(n for n, state in layers.items() if state['in_force']))
    absent = [f'{n} ({s["note"]})' if s.get('note') else n for n, s in layers.items()
              if not s['in_force']]
    if absent:
        print('  absent here:      ' + ', '.join(absent))
    held_by = [f'{n} by {limit["held_by"]}' for n, limit in report['limits'].items()
               if limit['value'] is not None]
    print('  limits held:      ' + ', '.join(held_by))
    for note in report.get('notes', []):
        print(f'  note:             {note}')
    good = status == 0 and worked and all(lacks.values())
    everything = 'Everything was contained' + (' that this host can contain.' if lacks else '.')
    print('\n' + (everything if good else 'NOT everything was contained: see above.'))
    print('Next: `build/src/cli/ward run -- sh` in a project of yours, `ward --help`, and '
          'README.md.')
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
