#!/usr/bin/env python3
"""Makes the man pages and shell completions from tables/verbs.def and tables/options.def.

gen_cli.py          writes docs/man/*.1, docs/man/meson.build and completions/*
gen_cli.py --check  writes nothing; exits 1 with the name of each file that is stale
"""
import pathlib
import re
import sys

import def_reader

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES_OF = {'POLICY', 'FILE', 'PATH[:AT]'}
DIRECTORIES_OF = {'WORKSPACE', 'DIR'}
CHECKPOINTS = 'ward checkpoint ls -q 2>/dev/null'
# What completes the value of an option, by its name: words, and a command that prints more of them.
PROFILES = "ward profile ls 2>/dev/null | cut -d ' ' -f 1"


def rows(table, macro, column=0):
    """One column of a table's rows."""
    found = def_reader.read(ROOT / "tables" / table)
    return list(dict.fromkeys(a[column] for m, a, _ in found if m == macro))


def values():
    """{option: (words, command)}: what is known when completions are made, and what only later."""
    fields = [f'{name}=' for name in rows('policy.def', 'FIELD')]
    return {'profile': ([], PROFILES), 'set': (fields, ''), 'add': (fields, ''),
            'cache': (rows('caches.def', 'CACHE'), ''), 'restore': ([], CHECKPOINTS),
            'isolation': (['native', 'oci', 'gvisor', 'vm', 'wasm'], '')}


VALUES = {}     # values(), once read_tables() has read them


class Option:
    def __init__(self, verbs, short, name, metavar, text, field):
        self.verbs, self.short, self.name, self.metavar, self.help, self.field = (verbs, short,
                                                                                  name, metavar,
                                                                                  text, field)

    def takes(self):
        """What completes the value: file, directory, other, or '' when there is none."""
        if not self.metavar:
            return ''
        return ('file' if self.metavar in FILES_OF else 'directory'
                if self.metavar in DIRECTORIES_OF else 'other')


class Verb:
    def __init__(self, arguments):
        (self.id, self.name, _, self.max, self.words, self.group, shown, self.args, self.help,
         self.about,
         self.example, self.example_help) = arguments
        self.first = shown == 'FIRST'
        self.options, self.apart = [], []

    def takes_boxes(self):
        """Whether every word is the name of a detached sandbox."""
        return self.words == 'PLAIN' and self.name != 'checkpoint' and self.args.lstrip(
            '[').startswith('BOX')

    def parts(self):
        """The words of its own that a verb begins with, as the synopsis has them: ls, rm and the
        like."""
        return list(dict.fromkeys(re.findall(r'(?:^|\|)\s*([a-z]+)', self.args)))


def read_tables():
    """The verbs that this build has, each with its options. What comes later is in neither."""
    VALUES.update(values())
    verbs = [Verb(a) for macro, a, _ in def_reader.read(ROOT / 'tables/verbs.def')
             if macro == 'VERB']
    for macro, a, _ in def_reader.read(ROOT / 'tables/options.def'):
        if macro == 'FLAG':
            option = Option(a[0], a[1], a[2], '', a[4], '')
        elif macro == 'TEXT':
            option = Option(a[0], a[1], a[2], a[3], a[5], '')
        elif macro == 'MAYBE':
            option = Option(a[0], a[1], a[2], '', a[5], '')
        elif macro == 'FIELD':
            option = Option(a[0], a[1], a[2], a[3], a[6], a[5])
        elif macro == 'SETS':
            option = Option(a[0], a[1], a[2], '', a[5], a[3])
        else:
            continue
        wanted = {w.strip() for w in option.verbs.split('|')}
        if 'V_RUN' in wanted:
            # run with a command of their own: see options_of() in src/cli/options.c
            wanted |= {'V_SHELL', 'V_AGENT'}
        for verb in verbs:
            if 'V_ALL' in wanted or 'V_' + verb.id in wanted:
                verb.options.append(option)
    for macro, (wanted, names), _ in def_reader.read(ROOT / 'tables/options_conflict.def'):
        for verb in verbs:
            if 'V_' + verb.id in wanted.split(' | '):
                verb.apart.append(('One at a time: ' if macro == 'ONE_OF' else 'No argument with ',
                                   names.split()))
    return verbs


def agents():
    """The agents that are verbs, with nothing of their own but a name."""
    rows = def_reader.read(ROOT / 'tables/agents.def')
    return [a[0] for macro, a, _ in rows if macro == 'AGENT']


def version():
    return re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text()).group(1)


# --- man pages

def roff(text):
    """Text for a man page: nothing in it is a request, hyphens of options stay hyphens."""
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return re.sub(r"^([.'])", r'\\&\1', text, flags=re.M)


def heading(name, brief):
    return ['.\\" Made by tools/gen_cli.py; do not edit.',
            f'.TH {name.upper()} 1 "" "ward {version()}" "User Commands"',
            '.nh', '.ad l', '.SH NAME', f'{roff(name)} \\- {roff(brief)}']


def man_option(option):
    short = f'\\fB\\-{option.short}\\fR, ' if option.short else ''
    value = f' \\fI{roff(option.metavar)}\\fR' if option.metavar else ''
    lines = ['.TP', f'{short}\\fB\\-\\-{roff(option.name)}\\fR{value}',
             roff(option.help[0].upper() + option.help[1:]) + '.']
    if option.field:
        lines.append(f'Sets \\fB{roff(option.field)}\\fR of the policy.')
    return lines


def synopsis(verb):
    lines = ['.SH SYNOPSIS', f'\\fBward {verb.name}\\fR']
    for option in verb.options:
        name = f'\\-{option.short}' if option.short else f'\\-\\-{roff(option.name)}'
        value = f' \\fI{roff(option.metavar)}\\fR' if option.metavar else ''
        lines.append(f'[\\fB{name}\\fR{value}]')
    if verb.args:
        lines.append(roff(verb.args))
    return lines


EXIT_STATUS = {
    'run': [('0-255', 'the exit status of the command'),
            ('124', 'timeout'),
            ('125', 'ward refused or failed, or the usage was wrong; the command did not run'),
            ('126', 'the command was found but could not be executed'),
            ('127', 'the command was not found inside'),
            ('128+N', 'signal N killed the command'),
            ('137', 'the command hit a limit; standard error names it')],
    'check': [('0', 'the file is valid'), ('1', 'the file has errors'), ('2', 'wrong usage'),
              ('125', 'the file could not be read')],
    'learn': [('0', 'the command succeeded under the policy'),
              ('1', 'the command did not succeed with everything that may be granted'),
              ('2', 'wrong usage'), ('125', 'it failed'),
              ('128+N', 'signal N, or a key such as ctrl-C, ended it; nothing was written')],
    'checkpoint': [('0', 'success'), ('1', 'ls: a checkpoint is damaged'), ('2', 'wrong usage'),
                   ('125', 'it failed')],
    'doctor': [('0', 'a run under the default policy works here'), ('1', 'it would be refused'),
               ('2', 'wrong usage')],
    '': [('0', 'success'), ('2', 'wrong usage'), ('125', 'it failed')],
}


def man_exit(name):
    lines = ['.SH EXIT STATUS']
    like = 'run' if name in ('shell', 'agent') else name
    for code, text in EXIT_STATUS.get(like, EXIT_STATUS['']):
        lines += ['.TP', f'.B {roff(code)}', roff(text[0].upper() + text[1:]) + '.']
    return lines


def man_verb(verb, verbs):
    lines = heading('ward-' + verb.name, verb.help) + synopsis(verb) + ['.SH DESCRIPTION']
    for i, paragraph in enumerate(verb.about.split('\n')):
        lines += ['.PP'] * (i > 0) + [roff(paragraph)]
    lines.append('.SH OPTIONS')
    for option in verb.options:
        lines += man_option(option)
    for rule, names in verb.apart:
        lines += ['.PP', rule + ', '.join(f'\\fB{roff(n)}\\fR' for n in names) + '.']
    lines += man_exit(verb.name)
    lines += ['.SH EXAMPLES', '.TP', f'.B {roff(verb.example)}',
              roff(verb.example_help[0].upper() + verb.example_help[1:]) + '.']
    others = [f'.BR ward\\-{v.name} (1),' for v in verbs if v is not verb
              and v.name in ('run', 'plan', 'check', 'doctor')]
    return lines + ['.SH SEE ALSO', '.BR ward (1),'] + others + ['.BR ward.yaml (5)']


def man_group(title, verbs):
    lines = [f'.SS {roff(title)}'] if verbs else []
    for verb in verbs:
        lines += ['.TP', f'.BR ward\\-{verb.name} (1)', roff(verb.help[0].upper() + verb.help[1:])
                  + '.']
    return lines


def man_ward(verbs):
    lines = heading('ward', 'run AI agents, and the code they write, in sandboxes')
    lines += ['.SH SYNOPSIS', '\\fBward\\fR \\fIVERB\\fR [\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]',
              '.SH DESCRIPTION',
              'One policy file says what an agent may read, write, execute and spend; the kernel '
              'enforces it.',
              'What the policy does not grant does not exist inside: no mount, no route, no '
              'capability.',
              'If the policy requires a layer that the host does not support, ward refuses the run '
              'and names the remedy.',
              '.SH VERBS']
    lines += man_group('Start here', [v for v in verbs if v.first])
    for macro, (group, title), _ in def_reader.read(ROOT / 'tables/verb_groups.def'):
        lines += man_group(title[0].upper() + title[1:],
                           [v for v in verbs if v.group == group and not v.first])
    lines += man_exit('run')
    lines += ['.PP', 'Verbs other than \\fBrun\\fR: 0 success, 1 findings, 2 wrong usage, 125 '
              'failure.', '.SH FILES',
              '.TP', '.I ward.yaml', 'The policy file; ward looks for it in the workspace.',
              '.TP', '.I .aiignore', 'More files to hide from the sandbox, in gitignore syntax.',
              '.TP', '.IR $XDG_STATE_HOME/ward ", " /var/lib/ward',
              'State: accepted policies, records of runs, the quarantine, results and logs of '
              'detached sandboxes.',
              '.TP', '.IR $XDG_RUNTIME_DIR/ward ", " /run/ward ", " /tmp/ward\\-UID',
              'Sockets of detached sandboxes. Only you can access it.',
              '.SH ENVIRONMENT',
              '.TP', '.B WARD_PROFILE',
              'Profile for runs where neither \\-\\-profile nor the policy file names one.',
              '.TP', '.B WARD_POLICY',
              'Policy file for runs without \\-p. In the workspace it must be '
              'accepted (ward trust) if it widens the defaults.',
              '.TP', '.B WARD_ISOLATION',
              'Engine for runs without \\-\\-isolation, over the policy.',
              '.TP', '.B XDG_CONFIG_HOME',
              'Directory of ward/config.yaml (your own defaults) and '
              'ward/profiles; default: ~/.config.',
              '.TP', '.B WARD_STATE_DIR', 'Use this directory for state instead.',
              '.TP', '.B WARD_RUNTIME_DIR', 'Use this directory for run-time files instead.',
              '.TP', '.B WARD_RUNSC', 'Absolute path of the \\fBrunsc\\fR that \\fBisolation: '
              'gvisor\\fR uses instead of the installed one.',
              '.TP', '.B NO_COLOR', 'Print the summary without colours.',
              '.SH EXAMPLES', '.TP', '.B ward run \\-\\- python3 agent.py',
              "The agent sees this directory and the system's programs, nothing else.",
              '.SH SEE ALSO']
    return lines + [f'.BR ward\\-{v.name} (1),' for v in verbs] + ['.BR ward.yaml (5)']


# --- completions

def words_of(verb):
    return ' '.join([f'--{o.name}' for o in verb.options]
                    + [f'-{o.short}' for o in verb.options if o.short])


def values_of(verb, kind):
    names = []
    for option in verb.options:
        if option.takes() == kind:
            names += [f'--{option.name}'] + ([f'-{option.short}'] if option.short else [])
    return names


def bash_verb(verb):
    lines = [f'\t{verb.name})']
    lines.append(f'\t\toptions="{words_of(verb)}"')
    for kind in ('file', 'directory', 'other'):
        names = values_of(verb, kind)
        lines.append(f'\t\t{kind}="{" ".join(names)}"')
    lines.append('\t\t;;')
    return lines


def bash_parts(verbs):
    lines = []
    for verb in verbs:
        if verb.parts() and verb.name != 'checkpoint':
            lines += [f'\telif [[ $verb == {verb.name} ]] && ((COMP_CWORD == 2)); then',
                      f'\t\tmapfile -t COMPREPLY < <(compgen -W "{" ".join(verb.parts())}" -- '
                      '"$word")']
    return lines


def bash_values():
    """A case for each option whose values are known; behind a value that ends with = no blank."""
    lines = ['\tcase $before in']
    for name, (words, command) in sorted(VALUES.items()):
        words = ' '.join(words + ([f'$({command})'] if command else []))
        lines += [f'\t--{name})',
                  f'\t\tmapfile -t COMPREPLY < <(compgen -W "{words}" -- "$word")',
                  "\t\t[[ ${#COMPREPLY[@]} != 1 || $COMPREPLY != *= ]] || compopt -o nospace",
                  '\t\treturn', '\t\t;;']
    return lines + ['\tesac']


def bash(verbs):
    command = '|'.join(v.name for v in verbs if v.words == 'COMMAND')
    boxes = '|'.join(v.name for v in verbs if v.takes_boxes())
    lines = ['# Made by tools/gen_cli.py; do not edit. Completions of ward for bash.', '',
             '_ward_options() {', '\tcase $1 in']
    for verb in verbs:
        lines += bash_verb(verb)
    lines += ['\t*)', "\t\toptions='' file='' directory='' other=''", '\t\t;;', '\tesac', '}', '',
              '# Where the command of a verb begins among the words, 0 when it has not begun.',
              '_ward_command_at() {', '\tlocal i',
              '\tfor ((i = 2; i < COMP_CWORD; i++)); do',
              '\t\tcase " $file $directory $other " in',
              '\t\t*" ${COMP_WORDS[i]} "*) ((i++)) && continue ;;', '\t\tesac',
              '\t\tcase ${COMP_WORDS[i]} in',
              '\t\t--) echo $((i + 1)) && return ;;',
              '\t\t-* | =) ;;',
              '\t\t*) echo "$i" && return ;;', '\t\tesac', '\tdone', '\techo 0', '}', '',
              '_ward() {',
              '\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} '
              'verb=${COMP_WORDS[1]}',
              '\tlocal options file directory other at',
              '\tCOMPREPLY=()',
              '\tif ((COMP_CWORD == 1)); then',
              '\t\tmapfile -t COMPREPLY < <(compgen -W "'
              f'{" ".join([v.name for v in verbs] + agents())} --help --version" -- "$word")',
              '\t\treturn', '\tfi',
              '\tif [[ $verb == agent ]] && ((COMP_CWORD == 2)) && [[ $word != -* ]]; then',
              f'\t\tmapfile -t COMPREPLY < <(compgen -W "ls set {" ".join(agents())}" -- "$word")',
              '\t\treturn', '\tfi',
              '\t_ward_options "$verb"',
              '\tcase $verb in',
              f'\t{command})', '\t\tat=$(_ward_command_at)',
              '\t\tif [[ $verb == exec ]]; then\t# the first word is a sandbox',
              '\t\t\tif ((at == COMP_CWORD || (at == 0 && COMP_CWORD > 1))) && [[ $word != -* '
              ']]; then',
              '\t\t\t\tmapfile -t COMPREPLY < <(compgen -W "$(ward ps -q 2>/dev/null)" -- "$word")',
              '\t\t\t\treturn', '\t\t\tfi', '\t\t\t((at > 0)) && ((at++))', '\t\tfi',
              '\t\tif ((at > 0)); then',
              '\t\t\tif declare -F _command_offset >/dev/null; then',
              '\t\t\t\t_command_offset "$at"',
              '\t\t\telif ((at == COMP_CWORD)); then',
              '\t\t\t\tmapfile -t COMPREPLY < <(compgen -c -- "$word")',
              '\t\t\telse',
              '\t\t\t\tmapfile -t COMPREPLY < <(compgen -f -- "$word")',
              '\t\t\tfi', '\t\t\treturn', '\t\tfi', '\t\t;;', '\tesac',
              '\tcase " $file " in *" $before "*) mapfile -t COMPREPLY < <(compgen -f -- "$word") '
              '&& return ;; esac',
              '\tcase " $directory " in *" $before "*) mapfile -t COMPREPLY < <(compgen -d -- '
              '"$word") && return ;; esac',
              '\tif [[ $verb == checkpoint && ${COMP_WORDS[2]} == rm && $COMP_CWORD -gt 2 && '
              '$word != -* ]]; then',
              f'\t\tmapfile -t COMPREPLY < <(compgen -W "$({CHECKPOINTS})" -- "$word")',
              '\t\treturn', '\tfi',
              *bash_values(),
              '\tcase " $other " in *" $before "*) return ;; esac',
              '\tif [[ $word == -* ]]; then',
              '\t\tmapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")',
              '\telif [[ $verb == help ]]; then',
              f'\t\tmapfile -t COMPREPLY < <(compgen -W "{" ".join(v.name for v in verbs)}" -- '
              '"$word")',
              *bash_parts(verbs),
              '\telif [[ $verb == net ]] && ((COMP_CWORD == 3)); then',
              '\t\tmapfile -t COMPREPLY < <(compgen -W "$(ward ps -q 2>/dev/null)" -- "$word")',
              '\telif [[ $verb == checkpoint ]]; then',
              '\t\t((COMP_CWORD > 2)) || mapfile -t COMPREPLY < <(compgen -W "ls rm $(ward ps -q '
              '2>/dev/null)" -- "$word")',
              f'\telif [[ $verb == @({boxes}) ]]; then',
              '\t\tmapfile -t COMPREPLY < <(compgen -W "$(ward ps -aq 2>/dev/null)" -- "$word")',
              f'\telif [[ $verb == @({command}) ]]; then',
              '\t\tmapfile -t COMPREPLY < <(compgen -c -- "$word")',
              '\telse',
              '\t\tmapfile -t COMPREPLY < <(compgen -f -- "$word")',
              '\tfi', '}', '', 'complete -o filenames -F _ward ward']
    return lines


def zsh_quote(text):
    return text.replace("'", "'\\''").replace('[', '\\[').replace(']', '\\]').replace(':', '\\:')


def zsh_option(option):
    value = ''
    if option.metavar:
        action = {'file': '_files', 'directory': '_files -/', 'other': ' '}[option.takes()]
        if option.name in VALUES and not option.takes() in ('file', 'directory'):
            words, command = VALUES[option.name]
            shown = words + ([f'${{(f)"$({command})"}}'.replace("'", "'\\''")] if command else [])
            action = f'( {" ".join(shown)} )'
        value = f':{zsh_quote(option.metavar)}:{action}'
    repeated = '*' if option.field else ''
    lines = [f"'{repeated}--{option.name}{'=' if value else ''}[{zsh_quote(option.help)}]{value}'"]
    if option.short:
        lines.append(f"'{repeated}-{option.short}[{zsh_quote(option.help)}]{value}'")
    return lines


def zsh_rest(verb):
    if verb.name == 'agent':
        return [f"'(-)1:agent:(ls set {' '.join(agents())})'", "'*::argument: _files'"]
    if verb.name == 'exec':
        return ["'(-)1:sandbox:( ${(f)\"$(ward ps -q 2>/dev/null)\"} )'", "'*::argument: _normal'"]
    if verb.words == 'COMMAND':
        return ["'(-)1:command: _command_names -e'", "'*::argument: _normal'"]
    if verb.name == 'help':
        return ["'1:verb:_ward_verbs'"]
    if verb.takes_boxes():
        return ["'*:sandbox:( ${(f)\"$(ward ps -aq 2>/dev/null)\"} )'"]
    if verb.name == 'net':
        return ["'1:what:(show allow deny)'", "'2:sandbox:( ${(f)\"$(ward ps -q 2>/dev/null)\"} )'",
                "'*:host:_hosts'"]
    if verb.name == 'checkpoint':
        return ["'1:sandbox:( ls rm ${(f)\"$(ward ps -q 2>/dev/null)\"} )'",
                f"'*:checkpoint:( ${{(f)\"$({CHECKPOINTS})\"}} )'"]
    if verb.parts():
        return [f"'1:what:({' '.join(verb.parts())})'", "'*:argument:_files'"]
    return ["'1:file:_files'"] if int(verb.max) else []


def zsh(verbs):
    lines = ['#compdef ward',
             '# Made by tools/gen_cli.py; do not edit. Completions of ward for zsh.', '',
             '_ward_verbs() {', '\tlocal -a verbs', '\tverbs=(']
    lines += [f"\t\t'{v.name}:{zsh_quote(v.help)}'" for v in verbs]
    lines += [f"\t\t'{name}:start this agent, see ward agent'" for name in agents()]
    lines += ['\t)', "\t_describe verb verbs", '}', '', '_ward() {',
              '\tlocal curcontext=$curcontext state line',
              "\t_arguments -C '1:verb:_ward_verbs' '*::argument:->arguments' && return",
              '\tcase $line[1] in']
    for verb in verbs:
        parts = [p for o in verb.options for p in zsh_option(o)] + zsh_rest(verb)
        lines.append(f'\t{verb.name})')
        lines.append('\t\t_arguments -S \\')
        lines += [f'\t\t\t{part} \\' for part in parts[:-1]] + [f'\t\t\t{parts[-1]}', '\t\t;;']
    lines += [f"\t{'|'.join(agents())})", "\t\t_arguments '*::argument: _files'", '\t\t;;']
    return lines + ['\tesac', '}', '', '_ward "$@"']


def fish_quote(text):
    return text.replace('\\', '\\\\').replace("'", "\\'")


def fish(verbs):
    names = ' '.join([v.name for v in verbs] + agents())
    lines = ['# Made by tools/gen_cli.py; do not edit. Completions of ward for fish.', '',
             'complete -c ward -f',
             f"complete -c ward -n 'not __fish_seen_subcommand_from {names}' -l version -d 'print "
             "the version'"]
    for verb in verbs:
        lines.append(f"complete -c ward -n 'not __fish_seen_subcommand_from {names}' -a "
                     f"{verb.name} "
                     f"-d '{fish_quote(verb.help)}'")
    for name in agents():
        lines.append(f"complete -c ward -n 'not __fish_seen_subcommand_from {names}' -a {name} "
                     "-d 'start this agent, see ward agent'")
    for verb in verbs:
        seen = f"-n '__fish_seen_subcommand_from {verb.name}'"
        for option in verb.options:
            short = f' -s {option.short}' if option.short else ''
            takes = {'': '', 'file': ' -r -F',
                     'directory': " -x -a '(__fish_complete_directories)'",
                     'other': ' -x'}[option.takes()]
            if option.name in VALUES and option.takes() == 'other':
                words, command = VALUES[option.name]
                shown = ' '.join(words + ([f'({command})'] if command else []))
                takes = f" -x -a '{fish_quote(shown)}'"
            lines.append(f"complete -c ward {seen}{short} -l {option.name}{takes} -d "
                         f"'{fish_quote(option.help)}'")
        if verb.name == 'agent':
            lines.append(f"complete -c ward {seen} -x -a 'ls set {' '.join(agents())}'")
        elif verb.words == 'COMMAND':
            lines.append(f"complete -c ward {seen} -x -a '(__fish_complete_subcommand "
                         "--fcs-skip=2)'")
        elif verb.takes_boxes():
            lines.append(f"complete -c ward {seen} -x -a '(ward ps -aq 2>/dev/null)'")
        elif verb.name == 'help':
            lines.append(f"complete -c ward {seen} -x -a '{names}'")
        elif verb.name == 'net':
            lines.append(f"complete -c ward {seen} -x -a 'show allow deny (ward ps -q "
                         "2>/dev/null)'")
        elif verb.name == 'checkpoint':
            lines.append(f"complete -c ward {seen} -x -a 'ls rm (ward ps -q 2>/dev/null) "
                         f"({CHECKPOINTS})'")
        elif verb.parts():
            lines.append(f"complete -c ward {seen} -F -a '{' '.join(verb.parts())}'")
        elif int(verb.max):
            lines.append(f'complete -c ward {seen} -F')
    return lines


def man_list(verbs):
    """What meson installs: every page that a generator makes, so that no verb lacks its page."""
    pages = ['libward.3', 'tools.yaml.5', 'ward.1', 'ward.yaml.5',
             *(f'ward-{verb.name}.1' for verb in verbs)]
    return ['# Made by tools/gen_cli.py from tables/verbs.def; do not edit.', 'install_man(files(',
            *(f"  '{page}'," for page in sorted(pages)), '))']


def make_all():
    verbs = read_tables()
    made = {'docs/man/ward.1': man_ward(verbs), 'completions/ward.bash': bash(verbs),
            'completions/_ward': zsh(verbs), 'completions/ward.fish': fish(verbs),
            'docs/man/meson.build': man_list(verbs)}
    for verb in verbs:
        made[f'docs/man/ward-{verb.name}.1'] = man_verb(verb, verbs)
    return {path: '\n'.join(lines) + '\n' for path, lines in made.items()}


def main():
    check = sys.argv[1:] == ['--check']
    stale = 0
    for path, text in make_all().items():
        file = ROOT / path
        if file.exists() and file.read_text(encoding='utf-8') == text:
            continue
        stale += 1
        if check:
            print(f'{path}: stale', file=sys.stderr)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding='utf-8')
            print(f'wrote {path}')
    return 1 if check and stale else 0


if __name__ == '__main__':
    sys.exit(main())
