#!/bin/bash
# Makes a small root directory with WasmEdge of Debian 13, for the tests and measurements of
# `isolation: wasm` on a system that has none: wasm_tree.sh DIR
#
# apt with a configuration of its own downloads the packages and verifies them; they are unpacked,
# not installed: no script of theirs runs, and nothing of this system changes. About 45 MB to
# download, 180 MB on disk, half a minute; nothing to do where DIR is complete. The mirror is the
# one that this system uses.
set -eu
[ $# = 1 ] || { echo "usage: wasm_tree.sh DIR" >&2; exit 2; }
tree=$(realpath -m "$1")
suite=trixie
[ ! -e "$tree/.complete" ] || exit 0
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo "wasm_tree: needs apt-get and dpkg-deb" >&2
	exit 1
fi
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e $keys ] || { echo "wasm_tree: needs the package debian-archive-keyring" >&2; exit 1; }
# shellcheck disable=SC2016 # it is apt that expands it
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
	grep -v security | grep -m 1 '/debian/*$' || true)
mirror=${mirror:-http://deb.debian.org/debian}

mkdir -p "$(dirname "$tree")"
work=$(mktemp -d "$(dirname "$tree")/wasm-tree.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work"/{lists/partial,archives/partial,etc/none,root}
: >"$work/status"
echo "deb [signed-by=$keys] $mirror $suite main" >"$work/etc/sources.list"
cat >"$work/apt.conf" <<-CONF
	Dir::State "$work";
	Dir::State::lists "lists";
	Dir::State::status "$work/status";
	Dir::Cache "$work";
	Dir::Cache::archives "archives";
	Dir::Etc::sourcelist "$work/etc/sources.list";
	Dir::Etc::sourceparts "$work/etc/none";
	Dir::Etc::preferencesparts "$work/etc/none";
	Acquire::Languages "none";
	APT::Architecture "amd64";
	APT::Sandbox::User "";
	Debug::NoLocking "1";
CONF
export APT_CONFIG="$work/apt.conf"
if ! { apt-get update -q &&
	apt-get install -y -q -d --no-install-recommends wasmedge libwasmedge0; } \
	>"$work/log" 2>&1; then
	tail -n 5 "$work/log" >&2
	echo "wasm_tree: cannot download WasmEdge from $mirror" >&2
	exit 1
fi
for package in "$work"/archives/*.deb; do
	dpkg-deb -x "$package" "$work/root"
done
rm -rf "$work/root/usr/share/doc" "$work/root/usr/share/locale"
for dir in lib lib64 bin; do
	[ -e "$work/root/$dir" ] || ln -s "usr/$dir" "$work/root/$dir"
done
mkdir -p "$work/root"/{tmp,proc,dev,etc,home,run}
: >"$work/root/.complete"
rm -rf "$tree"
mv "$work/root" "$tree"
chmod 755 "$tree"
