#!/bin/busybox sh
# shellcheck shell=dash disable=SC3043,SC1091
# pid 1 of the guest: lays out a small Debian-like system in memory, runs the cases of /cases.sh,
# powers off. What it says goes to the serial line; run.py reads the lines that start with "@@".
export PATH=/usr/bin:/usr/sbin:/bin
if [ ! -e /switched ]; then
	# The first root of a kernel cannot be left by pivot_root, which ward must do: move to a
	# tmpfs, as distributions do.
	/bin/busybox mkdir -p /proc /root2
	/bin/busybox mount -t tmpfs -o mode=755 none /root2
	cd / && /bin/busybox cp -a bin etc home init lib* opt sbin usr cases.sh /root2/
	/bin/busybox touch /root2/switched
	exec /bin/busybox switch_root /root2 /init
fi
mkdir -p /proc /sys /dev /tmp /run /var/lib /root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 none /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 none /tmp
mount -t tmpfs none /run
chmod 700 /root
chmod 640 /etc/shadow
chown -R 1000:1000 /home/user
ip link set lo up

# case_run NAME USER COMMAND: runs it in a shell as that user in a fresh workspace, with the report
# in $REPORT
case_run() {
	local name=$1 user=$2
	local ws=/home/$user/ws REPORT=/tmp/report.$name
	[ "$user" = root ] && ws=/root/ws
	rm -rf "$ws" && mkdir -p "$ws" && chown "$user:$user" "$ws"
	rm -f "$REPORT"
	echo "@@begin $name"
	if [ "$user" = root ]; then
		(cd "$ws" && REPORT=$REPORT HOME=/root sh -c "$3") >/tmp/out 2>&1 </dev/null
	else
		(su -s /bin/sh "$user" -c "cd $ws; export REPORT=$REPORT; $3") >/tmp/out 2>&1 \
			</dev/null
	fi
	echo "@@exit $name $?"
	echo "@@output $name $(head -c 6000 /tmp/out | base64 -w 0)"
	[ -e "$REPORT" ] && echo "@@report $name $(base64 -w 0 <"$REPORT")"
}

echo "@@kernel $(uname -r)"
. /cases.sh
echo "@@done"
sync
poweroff -f
