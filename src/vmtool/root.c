/*
 * ward vm root: the root of guests as one file, an erofs image. In: an image of the store, or host.
 * Out: STATE/vm/roots/KEY.erofs. Both are read from inside a native sandbox: an image's tree
 * because its reader may be broken by it, the host's own directories so that exactly what a sandbox
 * shows gets in. Everything in it belongs to root, as in the image's tree nothing has an owner of
 * its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/json.h"
#include "base/path.h"
#include "policy/units.h"
#include "vmtool/tool.h"

#define SPARE_ROOM (UINT64_C(64) << 20)

/* What of a sandbox's root is made new in each. */
static const char *const private_dirs[] = { "proc", "sys",  "dev",  "tmp",   "run",
					    "home", "root", "var",  "mnt",   "media",
					    "srv",  "opt",  "boot", ".ward", "work" };

/* A native sandbox that writes in the work directory and nowhere else. */
static void add_sandbox(const struct tool_work *w, struct strv *argv)
{
	static const char *const words[] = { "ward",   "run",
					     "--set",  "audit.journal=none",
					     "--set",  "process.git_identity=false",
					     "--disk", "none",
					     "--set",  "resources.inode_limit=none" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		strv_add(argv, words[i]);
	strv_addf(argv, "--workspace=%s", w->path);
}

/* Names, links and depth of the tree are a stranger's, and mkfs.erofs was not made for that. */
static int make_of_image(const struct tool_work *w, const struct image *image, const char *out,
			 struct ward_err *e)
{
	static const char *const options[] = { "--quiet", "--all-root", "-x-1", "-T0" };
	auto_strv argv = { 0 };
	char mkfs[PATH_MAX];

	if (program_find_system("mkfs.erofs", mkfs, e) < 0)
		return ward_remedy(e, "install it: apt-get install erofs-utils");
	add_sandbox(w, &argv);
	strv_addf(&argv, "--ro=%s", image->root);
	strv_add(&argv, "--");
	strv_add(&argv, mkfs);
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		strv_add(&argv, options[i]);
	strv_add(&argv, out);
	strv_add(&argv, image->root);
	return argv.failed ? ward_fail(e, ENOMEM, "out of memory")
			   : tool_run_ward("mkfs.erofs", argv.items, e);
}

/* What a copy of the host's directories and the root made of it take together, about: nearly
 * everything is beneath /usr. */
static uint64_t host_room(void)
{
	char usr[] = "/usr";
	FTS *walk = fts_open((char *[]){ usr, NULL }, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	uint64_t blocks = 0;

	for (FTSENT *entry = walk ? fts_read(walk) : NULL; entry; entry = fts_read(walk))
		if (entry->fts_info == FTS_F)
			blocks += (uint64_t)entry->fts_statp->st_blocks;
	if (walk)
		fts_close(walk);
	return blocks * 512 * 2 + SPARE_ROOM;
}

static int check_room(const char *dir, struct ward_err *e)
{
	uint64_t needed = host_room();
	struct statvfs v;
	char size[32];

	if (statvfs(dir, &v) < 0)
		return ward_fail_errno(e, "cannot look at %s", dir);
	if ((uint64_t)v.f_bavail * v.f_frsize < needed) {
		units_format_size(needed & ~(uint64_t)0xfffff, size, sizeof(size));
		ward_fail(e, ENOSPC,
			  "packing the host's directories temporarily takes %s, half of it "
			  "permanently, which %s does not have",
			  size, dir);
		return ward_remedy(e, "use a smaller image: ward image import, then --image NAME");
	}
	return 0;
}

/* From a copy by tar, because mkfs.erofs gives up at the first directory that it may not read.
 * Nothing is set-id in it, which a sandbox could not make. */
static int make_of_host(const struct tool_work *w, const char *out, struct ward_err *e)
{
	auto_strv argv = { 0 };
	auto_buf script = { 0 };
	char tar[PATH_MAX], mkfs[PATH_MAX];
	int r = program_find_system("tar", tar, e);

	if (r == 0)
		r = program_find_system("mkfs.erofs", mkfs, e);
	if (r < 0)
		return ward_remedy(e, "install it: apt-get install tar erofs-utils");
	r = check_room(w->path, e);
	if (r < 0)
		return r;
	add_sandbox(w, &argv);
	buf_puts(&script, "set -e; mkdir tree; set --; for d in /*; do case $d in ");
	for (size_t i = 0; i < ARRAY_LEN(private_dirs); i++)
		buf_printf(&script, "%s/%s", i ? "|" : "", private_dirs[i]);
	buf_puts(&script, ") ;; *) set -- \"$@\" \".$d\" ;; esac; done; ");
	buf_printf(&script,
		   "{ r=0; %s -C / --exclude=\".$PWD\" --ignore-failed-read --mode=ug-s -cf - "
		   "\"$@\" 2>said || r=$?; echo $r >status; } | %s -C tree --no-same-owner -xf -; ",
		   tar, tar);
	/* 1: a file changed meanwhile */
	buf_puts(&script, "test \"$(cat status)\" -le 1 || { tail -n 3 said >&2; exit 1; }; test "
			  "-e tree/usr/bin; ");
	buf_printf(&script, "%s --quiet --all-root -x-1 \"$0\" tree >/dev/null", mkfs);
	strv_add(&argv, "--");
	strv_add(&argv, "/bin/sh");
	strv_add(&argv, "-c");
	strv_add(&argv, buf_text(&script));
	strv_add(&argv, out);
	return argv.failed || script.failed ? ward_fail(e, ENOMEM, "out of memory")
					    : tool_run_ward("packing", argv.items, e);
}

int tool_root_make(const struct tool_options *o, const char *name, char ret_key[SHA256_HEX],
		   bool *ret_made, struct ward_err *e)
{
	bool host = strcmp(name, "host") == 0;
	struct image image = { .lock_fd = -1 };
	struct tool_work w = { .lock_fd = -1 };
	auto_free char *place = NULL, *part = NULL;
	int r = host ? 0 : images_open(name, &image, e);

	*ret_made = false;
	if (r == 0)
		r = vm_root_key(host ? NULL : &image, ret_key, e);
	if (r == 0)
		r = vm_root_path(ret_key, &place, e);
	if (r == 0 && access(place, R_OK) < 0) {
		r = tool_work_begin(&w, e);
		part = r == 0 ? path_join(w.path, "root.erofs") : NULL;
		if (r == 0)
			tool_tell(o,
				  host ? "packing the host's own directories, which takes minutes"
				       : "packing %s",
				  name);
		if (r == 0)
			r = host ? make_of_host(&w, part, e) : make_of_image(&w, &image, part, e);
		if (r == 0 && (tool_seal(part) < 0 || rename(part, place) < 0))
			r = ward_fail_errno(e, "cannot make %s", place);
		*ret_made = r == 0;
	}
	tool_work_end(&w);
	image_clear(&image);
	return r < 0 ? ward_wrap(e, "the root of %.100s", name) : 0;
}

int tool_root(const struct tool_options *o)
{
	struct ward_err e = { 0 };
	char key[SHA256_HEX] = "";
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	bool made = false;

	if (o->count != 1) {
		ward_fail(&e, EINVAL, "root takes the name of an image, or host");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (tool_root_make(o, o->words[0], key, &made, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "root", key);
		json_bool(&j, "made", made);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (!o->quiet) {
		buf_printf(&out,
			   made ? "%s is ready as a root of virtual machines\n"
				: "%s was already packed\n",
			   o->words[0]);
	}
	return say_out(&out, EXIT_FINE);
}
