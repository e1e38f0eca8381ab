"""What kvm.py runs in its guest, as cases.py has it: a name, a user, a shell command, and what must
be true of its result."""

PREPARE = r'''
for m in irqbypass kvm kvm-amd; do insmod /opt/modules/$m.ko; done
for u in user stranger; do
	mkdir -p /home/$u/.local/state
	cp -a /opt/state /home/$u/.local/state/ward
done
mkdir -p /var/lib && mv /opt/state /var/lib/ward
echo "stranger:x:1001:1001::/home/stranger:/bin/sh" >> /etc/passwd
echo "stranger:x:1001:" >> /etc/group
echo "kvm:x:107:user" >> /etc/group
chown -R 1000:1000 /home/user
chown -R 1001:1001 /home/stranger
chgrp 107 /dev/kvm
chmod 0660 /dev/kvm
'''

MACHINE = '--isolation vm --image small --set vm.memory=128Mi'


def wall(r):
    return (r.report or {}).get('wall') or ''


def cases(user):
    return [
        (f'doctor-{user}', user, 'ward doctor',
         lambda r: 'KVM) in a native sandbox: hardware isolation' in ' '.join(r.out.split())),
        (f'plan-{user}', user, f'ward plan {MACHINE} -- true', lambda r: r.code == 0
         and 'rw  device /dev/kvm' in r.out and 'hardware isolation' in r.out),
        (f'native-has-none-{user}', user, 'ward run -- ls /dev/kvm', lambda r: r.code != 0
         and 'No such file' in r.out),
        (f'tcg-has-none-{user}', user, f'ward plan {MACHINE} --set vm.accel=tcg -- true',
         lambda r: r.code == 0 and '/dev/kvm' not in r.out and 'no hardware isolation' in r.out),
        (f'run-{user}', user, f'echo INTO-THE-MACHINE > in.txt; ward run {MACHINE} --set '
         'require.isolation=vm --report $REPORT -- '
         'sh -c "uname -r; id -u; cat in.txt; grep -c hypervisor /proc/cpuinfo; grep -cw svm '
         '/proc/cpuinfo; echo OUT-OF-THE-MACHINE > out.txt; exit 7"; echo code $?; cat out.txt',
         lambda r: 'code 7' in r.out and 'cloud-amd64\n1000\nINTO-THE-MACHINE\n1\n0\n' in r.out
         and 'OUT-OF-THE-MACHINE' in r.out and r.report['engine'] == 'vm'
         and wall(r).endswith(': hardware isolation')),
        (f'preference-{user}', user, 'ward plan --isolation "[vm, native]" --image small --set '
         'vm.memory=128Mi -- true', lambda r: r.code == 0 and 'hardware isolation' in r.out),
        (f'template-{user}', user, 'ward vm template build --image small --memory 128Mi',
         lambda r: r.code == 0 and 'is ready' in r.out),
        (f'clone-{user}', user, f'ward run {MACHINE} --report $REPORT -- sh -c "uname -r; cat '
         '/proc/sys/kernel/random/uuid"',
         lambda r: r.code == 0 and 'cloud-amd64' in r.out
         and any('starts from the template' in n for n in r.report['notes'])),
        (f'host-root-{user}', user, 'ward vm root host && ward vm root host && '
         'ward run --isolation vm --set vm.memory=256Mi --report $REPORT -- sh -c "uname -r; ls -l '
         '/usr/bin/qemu-system-x86_64; echo OUT-OF-THE-MACHINE > out.txt"; echo code $?; cat '
         'out.txt; du -a ~/.local/state/ward/vm /var/lib/ward/vm 2>&1 | grep work-',
         lambda r: 'host is ready as' in r.out and 'host was ready' in r.out
         and 'cloud-amd64' in r.out and '/usr/bin/qemu-system-x86_64\n' in r.out
         and 'OUT-OF-THE-MACHINE' in r.out and 'work-' not in r.out),
        (f'exec-{user}', user, f'ward run -d --name box {MACHINE} -- sleep 1000 && ward exec box '
         '-- sh -c "uname -r; exit 3"; echo code $?; ward kill box; ward rm box; true',
         lambda r: 'code 3' in r.out and 'cloud-amd64' in r.out),
    ]


CASES = [
    ('stranger-doctor', 'stranger', 'ward doctor',
     lambda r: 'may not be opened (mode 0660, owner 0, group 107)' in r.out),
    ('stranger-run', 'stranger', f'ward run {MACHINE} -- true', lambda r: r.code == 125
     and 'usermod -aG kvm' in r.out and 'vm.accel=tcg' in r.out),
] + cases('user') + cases('root')
