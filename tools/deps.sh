#!/bin/bash
# What ward needs from the system, as one table, and how to get it on Debian and Ubuntu.
#
#   deps.sh check ROLE...     say what is missing and exit 1; installs nothing
#   deps.sh install ROLE... [-- ROLE...]
#                             install what is missing with apt (through sudo where not root);
#                             roles behind -- are optional: what apt cannot install is left out
#   deps.sh absent ROLE...    a line "PACKAGE PROBE" for each row that is missing, for programs
#
# Exit status 3 of install: this user may not install (not root, and no sudo); the line for root was
# printed.
# A row: role, Debian package, and a probe that tells whether it is there: cmd:NAME in PATH (or
# sbin), file:PATTERN. A package A|B is B where the release has no A.
# Roles "peers" and "relays" are what the network and inspection are measured beside; the bench
# names those that are absent.
# Role "waf" is what ward can be built without, too: a policy that asks for the firewall is refused
# then.
# Role "serve" is what ward can be built without, too: there is no ward serve then.
# Role "wasm" is what makes and runs WASI modules in the tests; without it they are skipped.
# WasmEdge itself is not in Debian 12: tools/wasm_tree.sh.
# Role "start" is what ward can be built without: its start takes a quarter of a millisecond longer
# then.
# Role "oracle" is what fuzzers compare ward with; without it those are not built.
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
	build  libpcre2-dev      file:/usr/include/pcre2.h
	build  libcurl4-openssl-dev file:/usr/include/x86_64-linux-gnu/curl/curl.h
	build  libcmocka-dev     file:/usr/include/cmocka.h
	start  musl-tools        cmd:musl-gcc
	waf    libmodsecurity-dev file:/usr/include/modsecurity/modsecurity.h
	waf    g++               cmd:g++
	waf    modsecurity-crs   file:/usr/share/modsecurity-crs/rules
	serve  libsqlite3-dev    file:/usr/include/sqlite3.h
	test   nodejs            cmd:node
	test   npm               cmd:npm
	projects autoconf     cmd:autoreconf
	projects automake     cmd:automake
	projects libtool      cmd:libtoolize
	projects cmake        cmd:cmake
	projects g++          cmd:g++
	projects debhelper    cmd:dh
	projects fakeroot     cmd:fakeroot
	projects golang-go    cmd:go
	projects maven        cmd:mvn
	projects npm          cmd:npm
	projects liblua5.4-dev file:/usr/include/lua5.4/lua.h
	projects lua5.4       cmd:lua5.4
	projects postgresql   file:/usr/lib/postgresql/*/bin/initdb
	projects python3-dev  cmd:python3-config
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
	test   python3-boto3     file:/usr/lib/python3/dist-packages/boto3/__init__.py
	test   python3-pip       cmd:pip3
	test   python3-venv      file:/usr/share/doc/python3-venv
	test   gdb               cmd:gdb
	test   direnv            cmd:direnv
	test   bindfs            cmd:bindfs
	test   fuse3             cmd:fusermount3
	test   rsyslog           cmd:rsyslogd
	test   rsyslog-openssl   file:/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_ossl.so
	test   prometheus        cmd:promtool
	test   chromium          cmd:chromium
	test   libnotify-bin     cmd:notify-send
	test   dbus-daemon       cmd:dbus-run-session
	test   python3-dbus      file:/usr/lib/python3/dist-packages/dbus/__init__.py
	test   python3-gi        file:/usr/lib/python3/dist-packages/gi/__init__.py
	wasm   clang             cmd:clang
	wasm   lld               cmd:wasm-ld
	wasm   wasi-libc         file:/usr/include/wasm32-wasi/stdio.h
	wasm   libclang-rt-dev-wasm32|libclang-rt-14-dev-wasm32 file:/usr/lib/llvm-*/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a
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
	format clang-format      cmd:clang-format
	fuzz   clang             cmd:clang
	oracle libvterm-dev      file:/usr/include/vterm.h
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
	package debhelper        cmd:dh
	package dpkg-dev         cmd:dpkg-buildpackage
	package fakeroot         cmd:fakeroot
	package lintian          cmd:lintian
	package g++              cmd:g++
	package musl-tools       cmd:musl-gcc
	package libacl1-dev      file:/usr/lib/x86_64-linux-gnu/libacl.a
	package libbz2-dev       file:/usr/lib/x86_64-linux-gnu/libbz2.a
	package liblz4-dev       file:/usr/lib/x86_64-linux-gnu/liblz4.a
	package liblzma-dev      file:/usr/lib/x86_64-linux-gnu/liblzma.a
	package libzstd-dev      file:/usr/lib/x86_64-linux-gnu/libzstd.a
	package nettle-dev       file:/usr/lib/x86_64-linux-gnu/libnettle.a
	fresh  debootstrap       cmd:debootstrap
	fresh  podman            cmd:podman
	fresh  crun              cmd:crun
	fresh  catatonit         cmd:catatonit
	TABLE
}

present() {
	case $1 in
	cmd:*) PATH=$PATH:/usr/sbin:/sbin command -v "${1#cmd:}" >/dev/null ;;
	file:*) compgen -G "${1#file:}" >/dev/null ;;
	esac
}

absent() {
	local role package probe
	while read -r role package probe; do
		case " $* " in *" $role "*) present "$probe" || echo "$package $probe" ;; esac
	done < <(rows) | sort -u
}

missing() {
	absent "$@" | cut -d ' ' -f 1 | uniq | tr '\n' ' '
}

# Whether somebody here may install: root, or a sudo that asks for no password or has a terminal to
# ask on.
may_install() {
	[ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# Of each A|B the one that this release has, B where apt knows neither.
chosen() {
	local words name
	for words; do
		for name in ${words//|/ }; do
			if apt-cache policy "$name" 2>/dev/null | grep -q 'Candidate: [^(]'; then
				break
			fi
		done
		echo "$name"
	done
}

apt_install() {
	echo "ward: installing $*"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
		-o Dpkg::Use-Pty=0 "$@" </dev/null && return
	echo "ward: apt could not install: $*" >&2
	return 1
}

# Installs what roles miss; nothing missing is fine.
install_roles() {
	local need
	need=$(missing "$@")
	# shellcheck disable=SC2046,SC2086
	[ -z "$need" ] || apt_install $(chosen $need)
}

action=${1:-check}
shift
if [ "$action" = absent ]; then
	absent "$@"
	exit
fi
required=() optional=()
for word; do
	if [ "$word" = -- ]; then
		optional=("${@:${#required[@]}+2}")
		break
	fi
	required+=("$word")
done
need=$(missing "${required[@]}" "${optional[@]}")
[ -n "$need" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "ward: missing: $need(Debian's names); this system has no apt-get, install them by hand" >&2
	exit 1
fi
if [ "$action" = check ] || ! may_install; then
	# shellcheck disable=SC2086
	need=$(chosen $need | tr '\n' ' ')
	echo "ward: missing: $need" >&2
	[ "$action" = check ] || echo "ward: only root can install that, and there is no sudo to ask" >&2
	echo "ward: as root: apt-get install -y --no-install-recommends ${need% }" >&2
	[ "$action" = check ] && exit 1
	exit 3
fi
as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q -o Dpkg::Use-Pty=0 >/dev/null ||
	echo "ward: apt-get update failed; trying with the lists that are there" >&2
install_roles "${required[@]}" "${optional[@]}" && exit 0
[ "${#optional[@]}" -gt 0 ] || exit 1
for role in "${optional[@]}"; do
	install_roles "$role"
done
install_roles "${required[@]}"
