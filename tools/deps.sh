#!/bin/bash
# What ward needs from the system, as one table, and how to get it on Debian and Ubuntu.
#
#   deps.sh check ROLE...     say what is missing and exit 1; installs nothing
#   deps.sh install ROLE...   install what is missing with apt (through sudo where not root)
#
# A row: role, Debian package, and a probe that tells whether it is there: cmd:NAME in PATH (or sbin), file:PATH.
# Roles "peers" and "relays" are what the network and inspection are measured beside; the bench names those that are absent.
# Role "waf" is what ward can be built without, too: a policy that asks for the firewall is refused then.
# Role "wasm" is what makes and runs WASI modules in the tests; without it they are skipped. WasmEdge itself is not in Debian 12: tools/wasm_tree.sh.
# Role "start" is what ward can be built without: its start takes a quarter of a millisecond longer then.
# Probes, not package names, decide, so that `check` is right on other distributions too.
set -u

rows() {
	cat <<-'TABLE'
	build  gcc               cmd:gcc
	build  libc6-dev         file:/usr/include/stdio.h
	build  meson             cmd:meson
	build  ninja-build       cmd:ninja
	build  pkg-config        cmd:pkg-config
	build  python3           cmd:python3
	build  libyaml-dev       file:/usr/include/yaml.h
	build  libc-ares-dev     file:/usr/include/ares.h
	build  libssl-dev        file:/usr/include/openssl/ssl.h
	build  libnghttp2-dev    file:/usr/include/nghttp2/nghttp2.h
	build  libarchive-dev    file:/usr/include/archive.h
	build  libvectorscan-dev file:/usr/include/hs/hs.h
	build  zlib1g-dev        file:/usr/include/zlib.h
	build  libcurl4-openssl-dev file:/usr/include/x86_64-linux-gnu/curl/curl.h
	build  libcmocka-dev     file:/usr/include/cmocka.h
	start  musl-tools        cmd:musl-gcc
	waf    libmodsecurity-dev file:/usr/include/modsecurity/modsecurity.h
	waf    g++               cmd:g++
	waf    modsecurity-crs   file:/usr/share/modsecurity-crs/rules
	test   git               cmd:git
	test   git-lfs           cmd:git-lfs
	test   openssl           cmd:openssl
	test   publicsuffix      file:/usr/share/publicsuffix/public_suffix_list.dat
	test   busybox-static    cmd:busybox
	test   util-linux        cmd:setpriv
	test   procps            cmd:ps
	test   iproute2          cmd:ip
	test   openssl           cmd:openssl
	test   curl              cmd:curl
	test   wget              cmd:wget
	test   nginx-light       cmd:nginx
	test   openssh-server    cmd:sshd
	test   redis-server      cmd:redis-server
	test   tmux              cmd:tmux
	test   vim               cmd:vim
	test   less              cmd:less
	test   runc              cmd:runc
	test   crun              cmd:crun
	test   skopeo            cmd:skopeo
	test   zstd              cmd:zstd
	test   bubblewrap        cmd:bwrap
	test   python3-jsonschema file:/usr/lib/python3/dist-packages/jsonschema/__init__.py
	test   python3-pip       cmd:pip3
	test   python3-venv      file:/usr/share/doc/python3-venv
	test   gdb               cmd:gdb
	test   bindfs            cmd:bindfs
	test   fuse3             cmd:fusermount3
	test   rsyslog           cmd:rsyslogd
	test   rsyslog-openssl   file:/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_ossl.so
	test   prometheus        cmd:promtool
	test   chromium          cmd:chromium
	wasm   clang             cmd:clang
	wasm   lld               cmd:wasm-ld
	wasm   wasi-libc         file:/usr/include/wasm32-wasi/stdio.h
	wasm   libclang-rt-14-dev-wasm32 file:/usr/lib/llvm-14/lib/clang/14.0.6/lib/wasi/libclang_rt.builtins-wasm32.a
	wasm   nodejs            cmd:node
	test   qemu-system-x86   cmd:qemu-system-x86_64
	test   erofs-utils       cmd:mkfs.erofs
	test   cpio              cmd:cpio
	test   xz-utils          cmd:xz
	programs nodejs          cmd:node
	programs npm             cmd:npm
	programs strace          cmd:strace
	programs postgresql      file:/usr/lib/postgresql
	programs postgresql-client cmd:psql
	programs cargo           file:/usr/bin/cargo
	programs golang-go       cmd:go
	programs default-jdk-headless cmd:javac
	programs chromium        cmd:chromium
	lint   clang-tidy        cmd:clang-tidy
	lint   cppcheck          cmd:cppcheck
	lint   shellcheck        cmd:shellcheck
	fuzz   clang             cmd:clang
	bench  bubblewrap        cmd:bwrap
	bench  firejail          cmd:firejail
	bench  runc              cmd:runc
	bench  crun              cmd:crun
	bench  util-linux        cmd:unshare
	peers  haproxy           cmd:haproxy
	peers  squid             cmd:squid
	peers  tinyproxy-bin     cmd:tinyproxy
	peers  passt             cmd:pasta
	peers  slirp4netns       cmd:slirp4netns
	peers  socat             cmd:socat
	peers  ripgrep           cmd:rg
	relays mitmproxy         cmd:mitmdump
	relays squid-openssl     file:/usr/lib/squid/security_file_certgen
	vm     qemu-system-x86   cmd:qemu-system-x86_64
	vm     busybox-static    cmd:busybox
	vm     erofs-utils       cmd:mkfs.erofs
	vm     cpio              cmd:cpio
	vm     zstd              cmd:zstd
	vm     xz-utils          cmd:xz
	TABLE
}

present() {
	case $1 in
	cmd:*) PATH=$PATH:/usr/sbin:/sbin command -v "${1#cmd:}" >/dev/null ;;
	file:*) [ -e "${1#file:}" ] ;;
	esac
}

missing() {
	local role package probe
	while read -r role package probe; do
		case " $* " in *" $role "*) present "$probe" || echo "$package" ;; esac
	done < <(rows) | sort -u | tr '\n' ' '
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "deps: not root and no sudo; run as root: $*" >&2
		return 1
	fi
}

action=${1:-check}
shift
need=$(missing "$@")
[ -n "$need" ] || exit 0
# shellcheck disable=SC2086
set -- $need

if [ "$action" = check ]; then
	echo "ward: missing: $*" >&2
	echo "ward: get it with:  sudo apt-get install -y $*   (or: make deps)" >&2
	exit 1
fi
if ! command -v apt-get >/dev/null; then
	echo "ward: missing: $* (Debian's names); this system has no apt-get, install them by hand" >&2
	exit 1
fi
echo "ward: installing $*"
export DEBIAN_FRONTEND=noninteractive
as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q -o Dpkg::Use-Pty=0 >/dev/null ||
	echo "ward: apt-get update failed; trying with the lists that are there" >&2
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
	-o Dpkg::Use-Pty=0 "$@" </dev/null || {
	echo "ward: apt could not install: $*" >&2
	exit 1
}
