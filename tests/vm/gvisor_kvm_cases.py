"""What gvisor_kvm.py runs in its guest, as cases.py has it: a name, a user, a shell command, and
what must be true of its result."""

PREPARE = r'''
for m in irqbypass kvm kvm-amd; do insmod /opt/modules/$m.ko; done
mkdir -p /home/stranger
echo "stranger:x:1001:1001::/home/stranger:/bin/sh" >> /etc/passwd
echo "stranger:x:1001:" >> /etc/group
echo "kvm:x:107:user" >> /etc/group
chown -R 1001:1001 /home/stranger
chgrp 107 /dev/kvm
chmod 0660 /dev/kvm
echo HOST-ONLY-TEXT > /opt/outside.txt
'''

GVISOR = '--isolation gvisor'
KVM = GVISOR + ' --set gvisor.platform=kvm'
STATE = {'root': '/var/lib/ward', 'user': '~/.local/state/ward'}

# What runs in the sandbox: another kernel than the host's, the agent's id, files in and out, no
# device, no interface but loopback, a status of its own.
INSIDE = ('uname -r; id -u; cat in.txt; ls /dev/kvm; ls /sys/class/net; cat /opt/outside.txt; cat '
          '/etc/shadow; echo OUT-OF-GVISOR > out.txt; exit 7')

# What the agent must not do; each line says BROKEN where it could.
ATTACKS = ('mkdir -p m; mount -t tmpfs none m && mount -t proc proc m && ls m | grep -qw ward && '
           'echo BROKEN-MOUNT; mknod k c 10 232 && cat k && echo BROKEN-DEVICE; '
           'echo x > /usr/bin/new && echo BROKEN-SYSTEM; ls /.ward/gvisor /.ward/proc && echo '
           'BROKEN-RUNNER; wget -T 2 -O - http://10.0.2.2/ && echo BROKEN-NETWORK; '
           'test -e /dev/kvm && echo BROKEN-KVM; echo HELD')

# The process that is gVisor's kernel, as the host sees it: its capabilities; and what root sees:
# its machine, and no descriptor of the device itself, which is closed once the machine is made.
SENTRY = ('for d in /proc/[0-9]*; do if grep -q "^runsc-sandbox" $d/cmdline; then grep -E '
          '"^(CapEff|CapPrm|CapBnd|Seccomp):" $d/status; ls -l $d/fd > /tmp/fds.$USER; fi; done; '
          'grep -o "anon_inode:kvm-[a-z]*" /tmp/fds.$USER | sort -u; echo devices $(grep -c '
          '/dev/kvm /tmp/fds.$USER)')


def wall(r):
    return (r.report or {}).get('wall') or ''


def sentry_is_bare(text, user):
    bare = all(f'{name}:\t0000000000000000' in text
               for name in ('CapEff', 'CapPrm', 'CapBnd')) and 'Seccomp:\t2' in text
    return bare and (user != 'root' or ('anon_inode:kvm-vm' in text and 'devices 0' in text))


def cases(user):
    return [
        (f'doctor-{user}', user, 'ward doctor', lambda r: ', platform kvm' in r.out),
        (f'kept-{user}', user, f'cat {STATE[user]}/gvisor-kvm', lambda r: ' yes\n' in r.out),
        (f'kept-no-{user}', user, f'f={STATE[user]}/gvisor-kvm; cp $f kept; sed -i "s/ yes/ no '
         f'KEPT-REASON/" $f; ward doctor; ward run {KVM} -- true; echo code $?; cp kept $f',
         lambda r: 'platform systrap; not kvm: KEPT-REASON' in r.out
         and 'gvisor.platform: kvm: KEPT-REASON' in r.out and 'code 125' in r.out),
        (f'kept-old-{user}', user, f'f={STATE[user]}/gvisor-kvm; sed -i "s/^.\\{{8\\}}\\(.*\\) '
         'yes/another-boot\\1 no KEPT-REASON/" $f; cat $f; ward doctor; cat $f',
         lambda r: 'another-boot' in r.out and r.out.count('KEPT-REASON') == 1
         and ', platform kvm' in r.out and r.out.endswith(' yes\n')),
        (f'plan-{user}', user, f'ward plan {GVISOR} -- true', lambda r: r.code == 0
         and 'rw  device /dev/kvm' in r.out and 'platform kvm' in r.out),
        (f'systrap-has-none-{user}', user,
         f'ward plan {GVISOR} --set gvisor.platform=systrap -- true', lambda r: r.code == 0
         and '/dev/kvm' not in r.out and 'platform systrap' in r.out),
        (f'native-has-none-{user}', user, 'ward run -- ls /dev/kvm', lambda r: r.code != 0
         and 'No such file' in r.out),
        (f'run-{user}', user, f'echo INTO-GVISOR > in.txt; ward run {GVISOR} --report $REPORT -- '
         f'sh -c {INSIDE!r}; echo code $?; cat out.txt',
         lambda r: 'code 7' in r.out and '4.4.0\n' in r.out and 'INTO-GVISOR\n' in r.out
         and 'ls: /dev/kvm: No such file' in r.out and 'HOST-ONLY-TEXT' not in r.out
         and 'secret-hash' not in r.out
         and 'OUT-OF-GVISOR' in r.out and 'eth' not in r.out and r.report['engine'] == 'gvisor'
         and wall(r).endswith('platform kvm')),
        (f'attacks-{user}', user, f'ward run {KVM} -- sh -c {ATTACKS!r}', lambda r: r.code == 0
         and 'HELD' in r.out and 'BROKEN' not in r.out),
        (f'signal-{user}', user, f'ward run {KVM} -- sh -c "kill -9 \\$\\$"; echo code $?',
         lambda r: 'code 137' in r.out),
        (f'processes-{user}', user, f'ward run {KVM} -- sh -c "for i in 1 2 3 4 5 6 7 8; do (sleep '
         '0.1; echo child \\$i) & done; wait; seq 1 20000 | md5sum"',
         lambda r: r.code == 0 and r.out.count('child') == 8
         and 'e071f707df7bbeee2a6a1eb48011ddd0' in r.out),
        (f'deadline-{user}', user, f'ward run {KVM} --timeout 8s -- sh -c "while :; do :; done"; '
         'echo code $?', lambda r: 'code 124' in r.out),
        (f'pause-{user}', user, f'ward run -d --name box {KVM} -- sh -c "while :; do echo x >> '
         'log; true; done"; until [ -s log ]; do sleep 0.2; done; for i in 1 2 3; do ward pause '
         'box; sleep 2; a=$(wc -c < log); sleep 1; '
         'b=$(wc -c < log); ward resume box; sleep 2; c=$(wc -c < log); [ $a = $b ] && [ $c -gt $b '
         '] && echo held; done; ward kill box; ward rm box', lambda r: r.out.count('held\n') == 3),
        (f'checkpoint-{user}', user,
         f'ward run -d --name box {KVM} -- sh -c "i=0; while :; do i=\\$((i+1)); echo \\$i >> log; '
         'sleep 0.2; done"; until [ -s log ]; do sleep 0.2; done; ward checkpoint box kept && ward '
         'kill box; ward rm box; '
         f'n=$(wc -l < log); echo MARK >> log; ward run -d --name again {KVM} --restore kept; for '
         'k in $(seq 60); do sleep 1; [ $(wc -l < log) -gt $((n + 2)) ] && break; done; '
         'sed -n "/MARK/,\\$p" log | sed -n 2p > next; echo next $(cat next) last $n; [ "$(cat '
         'next)" -gt 1 ] && echo went-on; ward logs again; ward kill again; ward rm again; ward '
         'checkpoint rm kept', lambda r: 'went-on' in r.out),
        (f'exec-{user}', user, f'ward run -d --name box {KVM} -- sleep 1000 && ward exec box -- sh '
         f'-c "uname -r; exit 3"; echo code $?; {SENTRY}; ward kill box; ward rm box; true',
         lambda r: 'code 3' in r.out and '4.4.0' in r.out and sentry_is_bare(r.out, user)),
    ]


CASES = [
    ('stranger-doctor', 'stranger', 'ward doctor',
     lambda r: 'platform systrap; not kvm: /dev/kvm may not be opened (mode 0660, owner 0, '
     'group 107)' in r.out),
    ('stranger-refused', 'stranger', f'ward run {KVM} -- true', lambda r: r.code == 125
     and 'gvisor.platform: kvm: ' in r.out and 'usermod -aG kvm' in r.out
     and 'gvisor.platform: auto' in r.out),
    ('stranger-falls-back', 'stranger', f'ward run {GVISOR} --report $REPORT -- sh -c "exit 5"; '
     'echo code $?', lambda r: 'code 5' in r.out and wall(r).endswith('platform systrap')),
] + cases('user') + cases('root')
