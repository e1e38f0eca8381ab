#!/bin/bash
# make package: a tarball and Debian packages of ward, made from the files that git knows.
#
#   package.sh OUT      writes to OUT: ward-VERSION-linux-x86_64.tar.gz and its .sha256, and
#                       ward_VERSION_amd64.deb, libward1_*.deb, libward-dev_*.deb
#
# The tree is copied to OUT/tree and built there once, with the packages' own rules
# (packaging/debian/rules: -Dportable=true); the tarball is the same build, installed once more. It
# can be unpacked anywhere: ward finds its parts from where it lies. Times and owners in it are
# fixed, so that the same tree gives the same bytes. What was built before is used again.
set -eu
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:?package.sh OUT}")
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
[ -n "$version" ] || { echo "package.sh: meson.build names no version" >&2; exit 1; }
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
mkdir -p "$out/tree"

# Copies what git knows and removes what it no longer knows; unchanged files keep their times, so
# that ninja compiles only what changed.
copy_tree() {
	git ls-files -z --cached --others --exclude-standard |
		while IFS= read -r -d '' name; do [ -e "$name" ] && printf '%s\0' "$name"; done |
		sort -z >"$out/files"
	if [ -e "$out/files.old" ]; then
		comm -z -13 "$out/files" "$out/files.old" | (cd "$out/tree" && xargs -0 -r rm -f --)
	fi
	tar -c --null -T "$out/files" | tar -x -C "$out/tree"
	mv "$out/files" "$out/files.old"
	rm -rf "$out/tree/debian"
	cp -r packaging/debian "$out/tree/debian"
}

build_packages() {
	rm -f "$out"/*.deb
	(cd "$out/tree" && DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" \
		dpkg-buildpackage -b -us -uc -nc) >"$out/build.log" 2>&1 || {
		tail -n 40 "$out/build.log" >&2
		echo "package.sh: the build failed; its log is $out/build.log" >&2
		exit 1
	}
	rm -f "$out"/*-dbgsym_*
}

# A second install of the same build: everything below one directory, libraries in lib/.
build_tarball() {
	local name=ward-$version-linux-x86_64 stage=$out/stage
	rm -rf "$stage"
	DESTDIR=$stage meson install -C "$out/tree/build-package" --no-rebuild --quiet --strip
	mv "$stage/usr" "$stage/$name"
	mv "$stage/$name"/lib/*/* "$stage/$name/lib/"
	rmdir "$stage/$name"/lib/x86_64-linux-gnu
	sed -i "s|\${pcfiledir}/../../..|\${pcfiledir}/../..|; s|lib/x86_64-linux-gnu|lib|" \
		"$stage/$name/lib/pkgconfig/ward.pc"
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		-C "$stage" -c "$name" | gzip -9n >"$out/$name.tar.gz"
	(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
	rm -rf "$stage"
}

copy_tree
build_packages
build_tarball
ls -1 "$out"/*.tar.gz "$out"/*.sha256 "$out"/*.deb
