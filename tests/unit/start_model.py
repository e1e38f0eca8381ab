#!/usr/bin/python3
"""Explores every order of the processes of a native start: start_model.py TABLE DOCUMENT

In: tables/start_sync.def, whose rows say who writes and who waits for each word. Out: "ok", or
the shortest sequence that breaks a rule. The processes below are those of docs/start.md, one step
for each thing that another process can see. Every process may be killed at every step, one in a
start and two where there are most processes; the kernel kills the helper and the command's
process with the child, which is pid 1 of their namespace, and the reaper with the supervisor.

What holds in every state that can be reached:
- the old root is unmounted at most once, pivot_root and the plan's mounts happen at most once,
  guards are gathered once;
- ward-init and the command are executed only after the plan was sent, the exec was allowed and
  the old root was unmounted, and the command only when the child has left the supervisor's
  memory;
- where nothing can happen any more, every process has ended: no process waits for ever. No step
  leads back, so every start ends;
- where no process was killed, the command was executed.

The waits are taken from the table: whether a waiter sees its peer's death is what its row says. A
word or wait that the model does not use, that another process uses than the row says, or that
docs/start.md does not name, is an error. At the end the model is broken in several ways, and each
must be noticed.
"""
import collections
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'tools'))
import def_reader  # noqa: E402

PROCESSES = ('supervisor', 'child', 'helper', 'reaper', 'command')
NONE, DEAD = -1, -2                     # in place of a step: not there yet; ended
FAIL, INIT = 90, 91                     # the child's way out, ward-init
# what is seen of a process or of the kernel beside the words
FACTS = ('system_sent', 'plan_sent', 'go_sent', 'ready_sent', 'helper_pid', 'reaper_pid', 'net_own',
         'helper_error', 'deathsig', 'gone', 'unmounted', 'pivots', 'mounts', 'gathered', 'inits',
         'commands', 'kills', 'command_ended')


class Broken(Exception):
    """A rule does not hold, or table and model differ."""


class Table:
    def __init__(self, path):
        self.pending, self.writers, self.claims, self.waits = {}, {}, {}, {}
        for macro, row, _ in def_reader.read(path):
            if macro == 'SYNC_WORD':
                self.pending[row[0]] = int(row[1])
                self.writers[row[0]] = set(row[2].split(', ')) - {'kernel'}
            elif macro == 'SYNC_CLAIM':
                self.claims[row[0]] = set(row[1].split(', '))
            else:
                word = row[1] if macro == 'SYNC_WAIT' else None
                self.waits[row[0]] = {'word': word, 'waiter': row[2], 'slice': row[5],
                                      'peer': row[6]}
        self.used = set()

    def names(self):
        users = {**self.writers, **self.claims}
        return {(name, who) for name in users for who in users[name]} | set(self.waits)


State = collections.namedtuple('State', PROCESSES + FACTS + ('words',))


class Model:
    """One kind of start. Each step gives the states that can follow; none: the process waits."""

    def __init__(self, table, helper, reaper, command, net, broken=None, deaths=1):
        self.deaths = deaths
        self.t, self.kind, self.reaper = table, helper, reaper
        self.command, self.net, self.broken = command, net, broken
        self.at = {name: i for i, name in enumerate((*table.pending, *table.claims))}
        self.steps = {'supervisor': self.supervisor, 'child': self.child, 'helper': self.helper,
                      'reaper': self.reap, 'command': self.run}

    # ---- words ----

    def first(self):
        words = [0] * len(self.at)
        words[self.at['helper_go']] = int(self.kind == 'at once')
        return State(0, 0, NONE, NONE, NONE, *[0] * len(FACTS), tuple(words))

    def get(self, s, word):
        return s.words[self.at[word]]

    def put(self, s, who, word, value):
        if who not in self.t.writers.get(word, self.t.claims.get(word, ())):
            raise Broken(f'{who} writes {word}, which the table does not say')
        self.t.used.add((word, who))
        words = list(s.words)
        words[self.at[word]] = value
        return s._replace(words=tuple(words))

    def claim(self, s, who, word):
        """The state behind it, or None: another process was first."""
        claimed = self.put(s, who, word, 1)
        return None if self.get(s, word) else claimed

    def wait(self, s, who, name, done=None):
        """'over', 'dead' (the waiter sees that its peer is), None"""
        row = self.t.waits.get(name)
        if not row or row['waiter'] != who:
            raise Broken(f'{who} waits for {name}, which the table does not say')
        self.t.used.add(name)
        if done or (row['word'] and self.get(s, row['word']) != self.t.pending[row['word']]):
            return 'over'
        dead = getattr(s, row['peer']) == DEAD
        return 'dead' if row['slice'] != 'UNTIL_WOKEN' and dead else None

    # ---- the kernel ----

    def end(self, s, who):
        s = s._replace(**{who: DEAD})
        if who == 'child':      # pid 1: all of its namespace goes, and its memory with it
            for other in ('helper', 'command'):
                if getattr(s, other) != NONE:
                    s = s._replace(**{other: DEAD})
        if who == 'supervisor' and s.deathsig and s.reaper != NONE:
            s = s._replace(reaper=DEAD)
        return s

    def to(self, s, who, step, **facts):
        return [s._replace(**{who: step}, **facts)]

    def check_exec(self, s, what):
        if not (s.plan_sent and s.go_sent and s.gone == 1 and s.pivots == 1 and s.mounts == 1):
            raise Broken(f'{what} is executed too early')

    # ---- the supervisor: launch.c, run.c, mount_reaper.c, box.c ----

    def supervisor(self, s):
        me, at, to = 'supervisor', s.supervisor, self.to
        if at == 0:
            return to(s, me, 1, system_sent=1)
        if at == 1:
            return to(s, me, 2, plan_sent=s.plan_sent + 1)
        if at == 2:
            return to(s if self.get(s, 'helper_go') else self.put(s, me, 'helper_go', 1), me, 3)
        if at == 3:
            return to(self.put(s, me, 'helper_go', 1), me, 4, go_sent=1)
        if at == 4:
            return to(s, me, 5, reaper=0 if self.reaper else NONE, reaper_pid=int(self.reaper))
        if at == 5:
            return to(s, me, 6) if s.ready_sent else to(s, me, 20) if s.child == DEAD else []
        if at == 6:     # the loop: the sandbox ends, or the run takes longer than a moment
            return to(s, me, 7) + (to(s, me, 20) if s.child == DEAD else [])
        if at == 7:
            claimed = self.claim(s, me, 'keep_claimed') if s.reaper_pid else None
            return to(claimed, me, 8) if claimed else to(s, me, 9)
        if at == 8:
            s = self.put(self.end(s, 'reaper'), me, 'keep_claimed', 0)
            return to(s, me, 9, reaper_pid=0)
        if at == 9:
            return to(s, me, 20) if s.child == DEAD else []
        if at == 20:    # every process of the sandbox is dead
            claimed = None if s.reaper_pid else self.claim(s, me, 'keep_claimed')
            return to(claimed, me, 21, gathered=s.gathered + 1) if claimed else to(s, me, 21)
        return [self.end(s, me)] if not s.reaper_pid or s.reaper == DEAD else []

    # ---- the child: child.c, helper.c, root.c, begin.c ----

    def make_net(self, s, step):
        claimed = self.claim(s, 'child', 'net_claimed')
        s = self.put(claimed, 'child', 'net_done', 1)._replace(net_own=1) if claimed else s
        return self.to(s, 'child', step)

    def receive(self, s, there, step):
        """A message comes, or the supervisor's end of the socket closes."""
        if not there and s.supervisor != DEAD:
            return []
        return self.to(s, 'child', step if there else FAIL)

    def child(self, s):
        at = s.child
        if at < 10:
            return self.child_builds(s)
        if at < 20:
            return self.child_enters(s)
        return self.child_executes(s)

    def child_builds(self, s):
        me, at, to = 'child', s.child, self.to
        if at == 0:
            there = self.kind != 'none'
            return [s._replace(child=2, helper=0 if there else NONE, helper_pid=int(there))]
        if at == 2:
            return self.receive(s, s.system_sent, 3)
        if at == 3:
            return to(self.put(s, me, 'system_done', 1), me, 4) if s.helper_pid else to(s, me, 4)
        if at == 4:
            return self.make_net(s, 5)
        if at == 5:
            claimed = self.claim(s, me, 'mounts_claimed')
            return to(claimed, me, 6) if claimed else to(s, me, 8)
        if at == 6:
            return self.receive(s, s.plan_sent, 7)
        if at == 7:
            return to(s, me, 10, mounts=s.mounts + 1)
        how = self.wait(s, me, 'MOUNTS_DONE')
        if how == 'dead':
            return to(s, me, FAIL, helper_pid=0)
        return to(s, me, FAIL if s.helper_error else 10) if how else []

    def enter_net(self, s, step):
        how = 'over' if s.net_own else self.wait(s, 'child', 'NET_DONE')
        if how == 'dead':
            return self.to(s, 'child', step, helper_pid=0, net_own=1)
        return self.to(s, 'child', step) if how else []

    def child_enters(self, s):
        me, at, to = 'child', s.child, self.to
        if at == 10:    # with a network the namespace is entered with the old root in view
            return self.enter_net(s, 11) if self.net else to(s, me, 11)
        if at == 11:
            if self.get(s, 'root_entered'):
                return to(s, me, 13)
            return to(s, me, 12, pivots=s.pivots + 1)
        if at == 12:
            return to(self.put(s, me, 'root_entered', 1), me, 13)
        if at == 13:
            if not s.helper_pid or self.broken == 'child unmounts, too':
                return to(s, me, 14, gone=s.gone + 1)
            return to(self.put(s, me, 'helper_go', 1), me, 15)
        if at == 14:
            return to(s, me, 15, unmounted=1)
        return to(s, me, 20) if self.net else self.enter_net(s, 20)

    def child_executes(self, s):
        me, at, to = 'child', s.child, self.to
        if at == 20:
            return to(s, me, 21, ready_sent=1)
        if at == 21:
            if not self.command:
                return to(s, me, 22)
            return to(self.put(s, me, 'child_in_memory', 1), me, 22, command=0)
        if at == 22:
            return to(s, me, 23) if self.broken == 'no go' else self.receive(s, s.go_sent, 23)
        if at == 23:
            return to(s, me, 24) if not s.helper_pid or s.helper == DEAD else []
        if at == 24:
            return to(s, me, 25 if s.unmounted or self.broken == 'result not read' else FAIL)
        if at == 25:
            return to(s if s.command == NONE else self.put(s, me, 'command_go', 1), me, 26)
        if at == 26:
            self.check_exec(s, 'ward-init')
            words = list(s.words)
            words[self.at['child_in_memory']] = 0
            first = s.command == NONE   # ward-init starts the command itself
            return to(s, me, INIT, inits=s.inits + 1, commands=s.commands + first,
                      command_ended=int(first), words=tuple(words))
        if at == FAIL:
            return [self.end(s, me)]
        # ward-init ends with the command or with the supervisor
        over = s.supervisor == DEAD or s.command_ended or s.command == DEAD
        return [self.end(s, me)] if over else []

    # ---- the helper: helper.c ----

    def helper(self, s):
        me, at, to = 'helper', s.helper, self.to
        if at == 0:
            return to(s, me, 2) if self.wait(s, me, 'HELPER_GO') else []
        if at == 2:
            claimed = self.claim(s, me, 'net_claimed')
            return to(claimed, me, 3) if claimed else to(s, me, 4)
        if at == 3:
            return to(self.put(s, me, 'net_done', 1), me, 4)
        if at == 4:
            return to(s, me, 5) if self.wait(s, me, 'SYSTEM_DONE') else []
        if at == 5:
            claimed = self.claim(s, me, 'mounts_claimed')
            return to(claimed, me, 6) if claimed else to(s, me, 10)
        if at == 6:
            if s.plan_sent:
                return to(s, me, 7, mounts=s.mounts + 1)
            return to(s, me, 9, helper_error=1) if s.supervisor == DEAD else []
        if at == 7:
            return to(s, me, 9) if self.net else to(s, me, 8, pivots=s.pivots + 1)
        if at == 8:
            return to(self.put(s, me, 'root_entered', 1), me, 9)
        if at == 9:
            return to(self.put(s, me, 'mounts_done', 1), me, 10)
        if at == 10:
            name = 'ROOT_ENTERED_SOON' if self.kind == 'at once' else 'ROOT_ENTERED'
            entered = self.broken == 'root not entered' or self.wait(s, me, name)
            return to(s, me, 11) if entered else []
        if at == 11:
            if not s.pivots:
                raise Broken('the helper unmounts the root that the host is in')
            return to(s, me, 12, gone=s.gone + 1)
        return [self.end(s._replace(unmounted=1), me)]

    # ---- the reaper: mount_reaper.c ----

    def reap(self, s):
        me, at, to = 'reaper', s.reaper, self.to
        if at == 0:
            return to(s, me, 1, deathsig=1)
        if at == 1:
            return to(s, me, 2) if s.child == DEAD else []
        claimed = self.claim(s, me, 'keep_claimed')
        return [self.end(claimed._replace(gathered=s.gathered + 1) if claimed else s, me)]

    # ---- the command's process: begin.c ----

    def run(self, s):
        me, at, to = 'command', s.command, self.to
        if at == 0:
            return to(s, me, 1) if self.wait(s, me, 'COMMAND_GO') else []
        if at == 1:
            how = self.broken == 'memory not left' or self.wait(s, me, 'CHILD_LEFT')
            return to(s, me, 2) if how else []
        if at == 2:
            how = self.broken == 'memory not left' or self.wait(s, me, 'ARGUMENTS', s.child == INIT)
            return to(s, me, 3) if how else []
        if at == 3:
            self.check_exec(s, 'the command')
            if s.child != INIT:
                raise Broken("the command runs beside a process that has the supervisor's memory")
            return to(s, me, 4, commands=s.commands + 1)
        return [self.end(s._replace(command_ended=1), me)]

    # ---- all of it ----

    def check(self, s, last):
        for fact in ('gone', 'pivots', 'mounts', 'gathered', 'plan_sent', 'inits', 'commands'):
            if getattr(s, fact) > 1:
                raise Broken(f'{fact}: twice')
        if not last:
            return
        waiting = [p for p in PROCESSES if getattr(s, p) not in (NONE, DEAD)]
        if waiting:
            raise Broken(f'{", ".join(waiting)}: waits for ever')
        if not s.kills and (s.commands != 1 or s.gone != 1 or s.gathered != 1):
            raise Broken('no process was killed, but the command was not executed')

    def follow(self, s):
        """(what happened, the state behind it)"""
        live = [p for p in PROCESSES if getattr(s, p) not in (NONE, DEAD)]
        moves = [(p, n) for p in live for n in self.steps[p](s)]
        if s.kills == self.deaths:
            return moves, []
        return moves, [(f'{p} is killed', self.end(s._replace(kills=s.kills + 1), p)) for p in live]

    def explore(self):
        """How many states there are; Broken has the way to the first that breaks a rule."""
        start = self.first()
        seen, todo = {start: None}, collections.deque([start])
        while todo:
            s = todo.popleft()
            try:
                moves, kills = self.follow(s)
                self.check(s, not moves)
            except Broken as e:
                raise Broken(f'{e}\n{self.way(seen, s)}') from None
            for what, n in moves + kills:
                if n not in seen:
                    seen[n] = (s, what)
                    todo.append(n)
        return len(seen)

    def way(self, seen, s):
        lines = []
        while seen[s]:
            before, what = seen[s]
            step = '' if 'killed' in what else f': step {getattr(before, what)}'
            lines.append(f'  {what}{step}')
            s = before
        lines.append(f'helper {self.kind}, reaper {self.reaper}, command beside ward-init '
                     f'{self.command}, network {self.net}')
        return '\n'.join(reversed(lines))


# when the helper begins, whether there is a reaper, whether the command starts beside ward-init,
# whether there is a network
KINDS = [(helper, reaper, *rest) for helper, reaper, rest in itertools.product(
    ('none', 'late', 'at once'), (False, True), ((False, False), (True, False), (True, True)))]
MOST = [('late', True, True, False), ('at once', True, True, False)]


def explore_all(table, broken=None):
    return sum(Model(table, *kind, broken, 2 if kind in MOST and not broken else 1).explore()
               for kind in KINDS)


def is_noticed(path, change=None, broken=None):
    table = Table(path)
    if change:
        change(table)
    try:
        explore_all(table, broken)
    except Broken:
        return True
    return False


BREAKS = ('child unmounts, too', 'no go', 'root not entered', 'result not read', 'memory not left')


def written_by_none(word):
    return lambda table: table.writers.update({word: set()})


def sleeps_for_ever(name):
    """The wait does not look whether its peer lives."""
    return lambda table: table.waits[name].update(slice='UNTIL_WOKEN')


def main():
    path = sys.argv[1]
    table = Table(path)
    count = explore_all(table)
    unused = table.names() - table.used
    if unused:
        raise Broken(f'in the table, but not in the model: {sorted(map(str, unused))}')
    document = pathlib.Path(sys.argv[2]).read_text(encoding='utf-8')
    unnamed = [name for name in (*table.writers, *table.claims) if f'`{name}`' not in document]
    if unnamed:
        raise Broken(f'in the table, but not in {sys.argv[2]}: {unnamed}')
    print(f'{count} states: ok')
    blind = [name for name, row in table.waits.items() if row['word'] and row['slice'].isdigit()]
    missed = [name for name in blind if not is_noticed(path, change=sleeps_for_ever(name))]
    missed += [b for b in BREAKS if not is_noticed(path, broken=b)]
    missed += [w for w in table.writers if not is_noticed(path, change=written_by_none(w))]
    if missed:
        raise Broken(f'broken, but not noticed: {missed}')
    print('each broken model was noticed')


try:
    main()
except Broken as problem:
    print(problem)
    sys.exit(1)
