/*
 * Packages of a recipe. In: names, a tree of Debian or one of its kind. Out: the tree with the
 * packages, installed by its own apt-get in a sandbox that reaches the hosts of the tree's own
 * lists of sources and nothing else, and sees none of the user's files. No process is root in
 * there: a shared object (pretend.c) lets chown succeed and drops set-id bits, which no image keeps
 * anyhow.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "host/program.h"
#include "image/sources.h"
#include "image/step.h"

#define PRETEND "/.ward-pretend.so" /* inside */
#define SOURCES_BYTES_MAX (256 * 1024)

/* Services are not started, names are asked of the sandbox's own resolver, and what was fetched is
 * not kept. */
static const char script[] =
	"policy=/usr/sbin/policy-rc.d\n"
	"own=\n"
	"if ! [ -e $policy ]; then own=1; mkdir -p /usr/sbin; printf '#!/bin/sh\\nexit 101\\n' > "
	"$policy; chmod 755 $policy; fi\n"
	"names=/etc/resolv.conf\n"
	"if [ -e $names ] || [ -L $names ]; then mv $names $names.ward; fi\n"
	"echo nameserver 127.0.0.53 > $names\n"
	"mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial /var/log/apt\n"
	"export LD_PRELOAD=" PRETEND " DEBIAN_FRONTEND=noninteractive\n"
	"options='-o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 -o Acquire::Retries=2'\n"
	"apt-get $options -q update\n"
	"apt-get $options -q -y --no-install-recommends install \"$@\"\n"
	"apt-get $options -q clean\n"
	"unset LD_PRELOAD\n"
	"rm -rf /var/lib/apt/lists/* $names\n"
	"if [ -e $names.ward ] || [ -L $names.ward ]; then mv $names.ward $names; fi\n"
	"if [ \"$own\" ]; then rm -f $policy; fi\n";

static int add_file_hosts(int root_fd, const char *path, struct strv *hosts, struct ward_err *e)
{
	struct ward_err ignored = { 0 };
	auto_buf bytes = { 0 };
	/* a link leads to nothing that we would read */
	auto_fd fd = path_open_nolink(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &ignored);
	int r;

	if (fd < 0)
		return 0;
	r = io_read_all(fd, SOURCES_BYTES_MAX, &bytes);
	if (r < 0)
		return ward_fail(e, -r, "cannot read /%s of the image: %s", path, strerror(-r));
	sources_hosts(bytes.data, bytes.len, hosts);
	return 0;
}

static int find_hosts(int root_fd, struct strv *hosts, struct ward_err *e)
{
	struct ward_err ignored = { 0 };
	int list = path_open_nolink(root_fd, "etc/apt/sources.list.d", O_RDONLY | O_DIRECTORY,
				    &ignored);
	auto_dir dir = list < 0 ? NULL : fdopendir(list);
	int r = add_file_hosts(root_fd, "etc/apt/sources.list", hosts, e);
	struct dirent *entry;

	while (r == 0 && dir && (entry = readdir(dir))) {
		char path[PATH_MAX];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "etc/apt/sources.list.d/%s", entry->d_name);
		r = add_file_hosts(root_fd, path, hosts, e);
	}
	if (r == 0 && !hosts->len) {
		ward_fail(e, ENOENT, "packages: the base image has no package source");
		return ward_remedy(e,
				   "use files: to put a source list into /etc/apt/sources.list.d "
				   "that names the server by its host name");
	}
	return r;
}

/* The shared object lies beside this program, or where the build put it. */
static int find_pretend(struct strv *options, struct ward_err *e)
{
	auto_free char *path = NULL;
	int r = program_path("ward-pretend.so", &path, e);

	if (r < 0)
		return r;
	strv_addf(options, "--ro=%s:" PRETEND, path);
	return 0;
}

int packages_install(const struct step *s, const struct strv *names, struct ward_err *e)
{
	auto_strv options = { 0 }, hosts = { 0 }, words = { 0 };
	struct stat st;
	int r;

	if (fstatat(s->root_fd, "usr/bin/apt-get", &st, AT_SYMLINK_NOFOLLOW) < 0) {
		ward_fail(e, ENOENT, "packages: the base image has no /usr/bin/apt-get");
		return ward_remedy(e, "start from a Debian or Ubuntu image; for other systems, "
				      "install packages with run: steps");
	}
	r = find_hosts(s->root_fd, &hosts, e);
	if (r == 0)
		r = find_pretend(&options, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < hosts.len; i++) {
		strv_add(&options, "--allow");
		strv_add(&options, hosts.items[i]);
	}
	for (size_t i = 0; i < 3; i++)
		strv_add(&words, (const char *const[]){ "/bin/sh", "-ec", script }[i]);
	strv_add(&words, "packages");
	for (size_t i = 0; i < names->len; i++)
		strv_add(&words, names->items[i]);
	r = step_run(s, &options, &words, e);
	if (r > 0) {
		ward_fail(e, EINVAL, "packages: apt-get ended with status %d", r);
		return ward_remedy(e, "its output above shows why; it could reach: %.200s%s",
				   hosts.items[0], hosts.len > 1 ? " and others" : "");
	}
	return r;
}
