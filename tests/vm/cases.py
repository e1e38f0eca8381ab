"""The cases that run in the guests: what only another kernel, or another set-up of cgroups, can
show.

A boot is a kernel and a preparation (shell, run as the guest's root) with cases. A case is a name,
a user, a shell command and what must be true of its result `r`: r.code, r.out (both streams),
r.report (the --report file, a dict).
"""

# ward's own processes stand in a cgroup that is delegated to uid 1000, as systemd does it for a
# user's session.
DELEGATED = r'''
mount -t cgroup2 none /sys/fs/cgroup
echo "+cpu +memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/user
echo "+cpu +memory +pids" > /sys/fs/cgroup/user/cgroup.subtree_control
mkdir /sys/fs/cgroup/user/scope
for d in /sys/fs/cgroup/user /sys/fs/cgroup/user/scope; do
	chown 1000:1000 $d $d/cgroup.procs $d/cgroup.subtree_control $d/cgroup.threads
done
echo $$ > /sys/fs/cgroup/user/scope/cgroup.procs
'''

# What `systemd-run --user --scope -p Delegate=yes ward run ...` gives: a cgroup of ward's own, with
# nobody else in it.
SCOPE = r'''
mount -t cgroup2 none /sys/fs/cgroup
echo "+cpu +memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/scope
d=/sys/fs/cgroup/scope
chown 1000:1000 $d $d/cgroup.procs $d/cgroup.subtree_control $d/cgroup.threads
'''

# The same tree, but nothing of it belongs to the user: what a login shell has.
NOT_DELEGATED = r'''
mount -t cgroup2 none /sys/fs/cgroup
echo "+cpu +memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/session
echo $$ > /sys/fs/cgroup/session/cgroup.procs
'''

# AppArmor that forbids ward what Ubuntu 24.04 forbids it.
APPARMOR = r'''
mount -t securityfs none /sys/kernel/security
cat /opt/apparmor/no-userns.bin > /sys/kernel/security/apparmor/.replace
'''

EAT = 'head -c 300m /dev/zero | tail -c 300m | wc -c'
# each stays below what one process may have
EAT_TOGETHER = ('for i in 1 2 3 4 5 6 7 8; do (x=$(head -c 12m /dev/zero | tr "\\0" a); sleep 20) '
                '& done; wait')
LEFT = 'find /sys/fs/cgroup -mindepth 1 -type d | grep -i ward; true'


def limit(r, name):
    return (r.report or {}).get('limits', {}).get(name, {})


def in_force(r, name):
    return (r.report or {}).get('layers', {}).get(name, {}).get('in_force') is True


def held_by(r, name, how):
    return limit(r, name).get('held_by') == how


def hit(r, name):
    return limit(r, name).get('hit') is True


def cgroup2_cases(user):
    return [
        (f'plain-{user}', user, 'ward run --report $REPORT -- sh -c "echo in; exit 7"',
         lambda r: r.code == 7 and 'in' in r.out),
        (f'held-{user}', user,
         'ward run --memory 64M --pids 64 --cpus 0.5 --report $REPORT -- true',
         lambda r: r.code == 0
         and all(held_by(r, n, 'cgroup2') for n in ('memory', 'pids', 'cpu'))),
        (f'unlimited-{user}', user,
         'ward run --memory none --pids none --report $REPORT -- sh -c "cat /proc/self/cgroup"',
         lambda r: r.code == 0 and '0::/\n' in r.out and held_by(r, 'memory', 'none')),
        (f'limited-after-all-{user}', user,
         'ward run --memory none --pids none --cpus 0.5 --report $REPORT -- true',
         lambda r: r.code == 0 and held_by(r, 'cpu', 'cgroup2')),
        (f'memory-{user}', user, f'ward run --memory 64M --report $REPORT -- sh -c "{EAT}"',
         lambda r: r.code == 137 and hit(r, 'memory') and held_by(r, 'memory', 'cgroup2')),
        (f'tmpfs-counts-{user}', user,
         'ward run --memory 64M --report $REPORT -- sh -c "head -c 200m /dev/zero > /dev/shm/x; '
         'head -c 200m /dev/zero > /tmp/x; echo alive"',
         lambda r: 'alive' not in r.out or 'o space' in r.out),
        (f'pids-{user}', user,
         "ward run --pids 20 --report $REPORT -- sh -c 'for i in $(seq 60); do sleep 3 & "
         "done; wait'",
         lambda r: r.code != 0 and hit(r, 'pids') and held_by(r, 'pids', 'cgroup2')),
        (f'cpu-{user}', user,
         'ward run --cpus 0.25 --timeout 4 --report $REPORT -- sh -c "while :; do :; done"',
         lambda r: r.code == 124 and r.report['cpu_ms'] < 0.5 * r.report['duration_ms']),
        (f'cgroup-unseen-{user}', user,
         'ward run --report $REPORT -- sh -c "cat /proc/self/cgroup; ls /sys 2>&1; cat '
         '/proc/1/cgroup"',
         lambda r: r.code in (0, 1) and '0::/\n' in r.out and 'scope' not in r.out),
        (f'killed-{user}', user,
         'ward run --memory 64M -- sh -c "sleep 100 & sleep 100" & P=$!; sleep 3; kill -9 $P; '
         'sleep 3; '
         'ps -o comm | grep -x sleep && exit 9; ' + LEFT,
         lambda r: r.code == 0 and 'ward-' not in r.out),
        (f'nesting-{user}', user, 'ward run --set process.nesting=true --memory 64M '
         '--report $REPORT -- sh -c "cat /proc/self/cgroup"',
         lambda r: r.code == 0 and '0::/\n' in r.out and held_by(r, 'memory', 'cgroup2')),
        (f'nothing-left-{user}', user, LEFT, lambda r: r.out == ''),
    ]


def early_cases(user):
    """A start makes its cgroup before it has a plan."""
    return [
        # it has the plan's limits when the command runs, and another ward leaves it alone
        (f'early-{user}', user,
         'rm -f began; ward run --pids 77 -- sh -c "touch began; sleep 5" & '
         'until [ -e began ]; do usleep 100000; done; ward recover; cd /sys/fs/cgroup/user; '
         'cat ward-early-*/pids.max ward-early-*/memory.oom.group; wait; echo ended $?; ' + LEFT,
         lambda r: '77\n1\nended 0\n' in r.out and 'ward-' not in r.out),
        # ward was killed between making it and being on record
        (f'early-killed-{user}', user,
         'mkdir /sys/fs/cgroup/user/ward-early-1-2-3 && ward recover; ' + LEFT,
         lambda r: 'cleaned up 1 ' in r.out and 'ward-' not in r.out),
        (f'early-killed-anywhere-{user}', user,
         'for i in $(seq 25); do ward run -- true & P=$!; usleep ${i}5000; kill -9 $P; wait $P; '
         'done 2>/dev/null; sleep 1; '
         'echo orphans: $(ls -d /sys/fs/cgroup/user/ward-early-* 2>/dev/null | wc -l); '
         'ward recover >/dev/null; ' + LEFT,
         lambda r: 'ward-' not in r.out),
    ]


def oci_cases(user):
    """An OCI runtime beside cgroup v2: the limits are ward's, and the runtime leaves no cgroup of
    its own."""
    rows = []
    for runtime in ('runc', 'crun'):
        ward = f'ward run --isolation oci --set oci.runtime={runtime}'
        rows += [
            (f'{runtime}-held-{user}', user,
             f'{ward} --memory 64M --pids 64 --cpus 0.5 --report $REPORT -- sh -c "id -u; cat '
             '/proc/self/cgroup"',
             lambda r: r.code == 0 and '1000\n' in r.out and '0::/\n' in r.out
             and 'scope' not in r.out
             and all(held_by(r, n, 'cgroup2') for n in ('memory', 'pids', 'cpu'))),
            (f'{runtime}-memory-{user}', user,
             f'{ward} --memory 64M --report $REPORT -- sh -c "{EAT}"',
             lambda r: r.code == 137 and hit(r, 'memory') and held_by(r, 'memory', 'cgroup2')),
        ]
    return rows + [(f'oci-nothing-left-{user}', user, LEFT, lambda r: r.out == '')]


def in_scope(command):
    """The command as the user, alone in the scope."""
    return ('echo $$ > /sys/fs/cgroup/scope/cgroup.procs; exec su -s /bin/sh user -c "cd '
            f'/home/user/ws; exec {command}"')


SCOPE_CASES = [
    ('ws', 'user', 'true', lambda r: r.code == 0),
    ('scope-held', 'root',
     in_scope('ward run --memory 64M --pids 64 --cpus 0.5 --report $REPORT -- true'),
     lambda r: r.code == 0 and all(held_by(r, n, 'cgroup2') for n in ('memory', 'pids', 'cpu'))),
    ('scope-left', 'root', LEFT + '; cat /sys/fs/cgroup/scope/cgroup.subtree_control',
     lambda r: r.out.strip() == ''),
    ('scope-memory', 'root', in_scope(f"ward run --memory 64M --report $REPORT -- sh -c '{EAT}'"),
     lambda r: r.code == 137 and hit(r, 'memory') and held_by(r, 'memory', 'cgroup2')),
    ('scope-nesting', 'root',
     in_scope('ward run --set process.nesting=true --memory 64M --report $REPORT -- true'),
     lambda r: r.code == 0 and held_by(r, 'memory', 'cgroup2')),
    ('scope-killed', 'root', "sh -c '" + in_scope('ward run --memory 64M -- sleep 100')
     + "' & P=$!; sleep 4; "
     '[ -d /sys/fs/cgroup/scope/ward-*-self ] || exit 8; kill -9 $P; sleep 4; ps -o comm | grep -x '
     'sleep && exit 9; ' + LEFT,
     lambda r: r.code == 0 and 'ward-' not in r.out),
]


def basic_cases(user):
    return [
        (f'runs-{user}', user,
         'ward run --report $REPORT -- sh -c "id -u; echo work > file; exit 3"',
         lambda r: r.code == 3 and in_force(r, 'seccomp') and in_force(r, 'user namespace')),
        (f'file-kept-{user}', user, 'ward run -- sh -c "echo work > file"; ls -n file; cat file',
         lambda r: r.code == 0 and 'work' in r.out
         and f' {0 if user == "root" else 1000} ' in r.out),
        (f'shadow-{user}', user, 'ward run -- cat /etc/shadow', lambda r: r.code == 1
         and 'secret-hash' not in r.out),
        (f'home-{user}', user,
         'echo key > ~/.secret; ward run -- sh -c "cat /root/.secret /home/user/.secret"',
         lambda r: r.code == 1 and 'key' not in r.out),
        (f'network-{user}', user, 'ward run -- sh -c "ip link; nc -w 2 10.0.2.2 22"',
         lambda r: r.code != 0 and 'eth' not in r.out),
        (f'hook-{user}', user,
         'mkdir -p .git/hooks; echo "[core]" > .git/config; echo ref: refs/heads/main > .git/HEAD; '
         'ward run -- sh -c "echo evil > .git/hooks/pre-commit; echo evil > .envrc"; ls -A . '
         '.git/hooks',
         lambda r: 'pre-commit\n' not in r.out.replace('hooks/pre-commit', '')
         and '.envrc\n' not in r.out.split('.git/hooks:')[0]),
        (f'timeout-{user}', user, 'ward run --timeout 2 --report $REPORT -- sleep 60',
         lambda r: r.code == 124 and hit(r, 'timeout')),
        (f'doctor-{user}', user, 'ward doctor', lambda r: r.code == 0 and 'seccomp' in r.out),
    ]


def ladder_cases(take_away):
    landlock = '--set require.isolation=landlock --set require.limits=none'
    return [
        (f'refused-{take_away[0]}', 'user', 'ward run -- true', lambda r: r.code == 125
         and 'user namespace' in r.out.lower()),
        (f'doctor-{take_away[0]}', 'user', 'ward doctor', lambda r: r.code == 1
         and take_away[0] in r.out),
        (f'landlock-{take_away[0]}', 'user',
         f'ward run {landlock} --report $REPORT -- sh -c "echo inside; echo x > file; cat file"',
         lambda r: r.code == 0 and 'inside' in r.out and in_force(r, 'landlock')
         and not in_force(r, 'user namespace')),
        (f'landlock-files-{take_away[0]}', 'user',
         f'echo key > ~/.secret; ward run {landlock} -- sh -c "echo ran; cat /home/user/.secret; '
         'echo x > /home/user/planted"; ls /home/user/planted',
         lambda r: r.code != 0 and 'ran\n' in r.out and 'key\n' not in r.out),
        (f'landlock-net-{take_away[0]}', 'user',
         f'ward run {landlock} -- sh -c "echo ran; exec nc -w 2 127.0.0.1 1"',
         lambda r: r.code != 0 and 'ran\n' in r.out and 'refused' not in r.out.lower()),
    ]


SYSCTL_MAX = ('max_user_namespaces', 'echo 0 > /proc/sys/user/max_user_namespaces')
SYSCTL_CLONE = ('unprivileged_userns_clone', 'echo 0 > /proc/sys/kernel/unprivileged_userns_clone')

BOOTS = [
    ('cgroup2-delegated', 'new', DELEGATED, cgroup2_cases('user') + cgroup2_cases('root')),
    ('cgroup2-early', 'new', DELEGATED, early_cases('user') + early_cases('root')),
    ('cgroup2-oci', 'new', DELEGATED, oci_cases('user') + oci_cases('root')),
    ('cgroup2-scope', 'new', SCOPE, SCOPE_CASES),
    ('cgroup2-not-delegated', 'new', NOT_DELEGATED, [
        ('watch-user', 'user', 'ward run --memory 64M --report $REPORT -- true',
         lambda r: r.code == 0 and held_by(r, 'memory', 'watch')),
        ('watch-memory-user', 'user',
         f"ward run --memory 64M --report $REPORT -- sh -c '{EAT_TOGETHER}'",
         lambda r: r.code == 137 and hit(r, 'memory')),
        ('require-cgroup-user', 'user', 'ward run --set require.limits=cgroup -- true',
         lambda r: r.code == 125 and 'Delegate' in r.out),
    ]),
    ('apparmor', 'new', NOT_DELEGATED, [
        ('apparmor-on', 'root', 'cat /sys/module/apparmor/parameters/enabled',
         lambda r: r.out.strip() == 'Y'),
    ] + basic_cases('user') + basic_cases('root')),
    ('apparmor-userns', 'new', NOT_DELEGATED + APPARMOR, [
        ('apparmor-refused', 'user', 'ward run -- true', lambda r: r.code == 125
         and 'user namespace' in r.out.lower()),
        ('apparmor-doctor', 'user', 'ward doctor', lambda r: r.code == 1
         and 'user namespace' in r.out.lower()),
        ('apparmor-profile', 'root',
         'cat /opt/apparmor/ward.bin > /sys/kernel/security/apparmor/.replace',
         lambda r: r.code == 0),
        ('apparmor-granted', 'user', 'ward run --report $REPORT -- true', lambda r: r.code == 0
         and in_force(r, 'user namespace')),
    ]),
    ('no-userns', 'new', NOT_DELEGATED + SYSCTL_MAX[1], ladder_cases(SYSCTL_MAX)),
    ('no-userns-debian', 'new', NOT_DELEGATED + SYSCTL_CLONE[1], ladder_cases(SYSCTL_CLONE)),
    ('old-kernel', 'old', NOT_DELEGATED, basic_cases('user') + basic_cases('root')),
]
