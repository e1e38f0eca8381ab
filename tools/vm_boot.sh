#!/bin/bash
# Boots a Debian kernel under emulation with the guest's init, the way the vm engine does, for work
# on the guest's side.
#
#   vm_boot.sh INIT [SOCKET [EROFS [DISK]]]
#   vm_boot.sh --fetch          only gets the kernel
#
# INIT: a static program that becomes /init. SOCKET: where the guest's port "ward.0" listens
# (default: WORK/port). EROFS: an image for /dev/vda. DISK: a file for /dev/vdb, over which trees
# go. WARD_VM_WORK: where the kernel is kept (default: build/vm-rig); WARD_VM_WORDS: more words for
# the kernel; WARD_VM_NET=1: a network card. The console is standard output; the end of the guest is
# the end of the script.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
init=$1
[ "$init" = --fetch ] || init=$(realpath "$1")
work=${WARD_VM_WORK:-$top/build/vm-rig}
socket=${2:-$work/port}
image=${3:+$(realpath "$3")}
disk=${4:+$(realpath "$4")}
mkdir -p "$work/root/modules"
cd "$work"

if [ ! -e vmlinux ]; then
	package=$(apt-cache pkgnames linux-image- | grep -E '^linux-image-[0-9.]+\+deb[0-9]+-cloud-amd64$' | sort -V | tail -1)
	apt-get download -q "$package"
	dpkg-deb -x "$package"_*.deb tree
	"$top/tests/vm/extract_vmlinux.py" tree/boot/vmlinuz-* vmlinux.part
	number=10
	for module in virtio_blk libcrc32c erofs overlay failover net_failover virtio_net; do
		xz -dc "$(find tree/lib/modules -name "$module.ko.xz")" >"root/modules/$number-$module.ko"
		number=$((number + 1))
	done
	rm -rf tree ./*.deb
	mv vmlinux.part vmlinux
fi
[ "$init" != --fetch ] || exit 0
mkdir -p root/dev root/proc root/sys
install -m 755 "$init" root/init
(cd root && find . | sort | cpio -o -H newc --quiet -R 0:0) >initrd.cpio

khz=$(awk -F: '/^cpu MHz/ { printf "%d", $2 * 1000; exit }' /proc/cpuinfo)
more=()
[ -z "$image" ] || more+=(-drive "if=none,id=root,format=raw,readonly=on,file=$image"
	-device "virtio-blk-pci,drive=root")
[ -z "$disk" ] || more+=(-drive "if=none,id=disk,format=raw,file.locking=off,file=$disk"
	-device "virtio-blk-pci,drive=disk")
[ -z "${WARD_VM_NET:-}" ] || more+=(-netdev "user,id=net"
	-device "virtio-net-pci,netdev=net,romfile=")
exec qemu-system-x86_64 -M microvm,pcie=on -accel tcg -cpu qemu64 -m 256 -nodefaults \
	-no-user-config -display none -serial stdio -no-reboot \
	-kernel vmlinux -initrd initrd.cpio \
	-chardev "socket,id=port,path=$socket,server=on,wait=off" \
	-device virtio-serial-pci -device virtserialport,chardev=port,name=ward.0 \
	"${more[@]}" \
	-append "console=ttyS0 panic=-1 quiet tsc=reliable tsc_early_khz=$khz no_timer_check nokaslr lpj=5000000 mitigations=off reboot=t random.trust_cpu=on ${WARD_VM_WORDS:-}"
