/*
 * ward vm template build|ls|rm. build boots a machine once, in a native sandbox of its own (`ward
 * run`), waits until its guest is ready for a command and writes it down: the memory as a file, the
 * rest as a state. A template is named by the digest of everything that a machine is made of
 * (state/vm.h), so a run finds the one that fits, and one that does not fit is never taken.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/remove.h"
#include "host/vm_kvm.h"
#include "policy/units.h"
#include "vmtool/tool.h"

struct making {
	const struct tool_options *o;
	struct vm_boot boot;
	struct tool_work work;
	char *qemu, *ward_vm, *root;
	char root_key[SHA256_HEX], key[SHA256_HEX];
};

static void add_two(struct strv *v, const char *a, const char *b)
{
	strv_add(v, a);
	strv_add(v, b);
}

/* The words of `ward run` and, behind them, those of ward-vm. */
static void add_words(const struct making *m, struct strv *v)
{
	const struct tool_options *o = m->o;

	bool kvm = strcmp(o->accel, "kvm") == 0;

	add_two(v, kvm ? VM_TEMPLATE_PROGRAM : "ward", "run");
	if (kvm)
		add_two(v, "--isolation=vm", "--set=vm.accel=kvm");
	add_two(v, "--set", "audit.journal=none");
	/* what a run of it must have, too */
	strv_addf(v, "--memory=%lluMi",
		  (unsigned long long)(vm_upper_bytes(o->memory_bytes, (unsigned)o->cpus) >> 20));
	strv_addf(v, "--workspace=%s", m->work.path);
	strv_addf(v, "--ro=%s", m->boot.kernel);
	strv_addf(v, "--ro=%s", m->boot.initrd);
	strv_addf(v, "--ro=%s", m->root);
	strv_addf(v, "--ro=%s", m->ward_vm);
	strv_add(v, "--");
	add_two(v, m->ward_vm, "template");
	add_two(v, "--program", m->qemu);
	add_two(v, "--accel", o->accel);
	strv_add(v, "--memory");
	strv_addf(v, "%llu", (unsigned long long)o->memory_bytes);
	strv_add(v, "--cpus");
	strv_addf(v, "%llu", (unsigned long long)o->cpus);
	add_two(v, "--kernel", m->boot.kernel);
	add_two(v, "--initrd", m->boot.initrd);
	add_two(v, "--root", m->root);
	strv_add(v, "--disk");
	strv_addf(v, "%s/disk", m->work.path);
	add_two(v, "--words", o->network ? VM_WORDS_ROOT " " VM_WORDS_NET : VM_WORDS_ROOT);
	if (o->network)
		strv_add(v, "--network");
	strv_add(v, "--ram");
	strv_addf(v, "%s/ram", m->work.path);
	strv_add(v, "--out");
	strv_addf(v, "%s/state", m->work.path);
}

/* First of all: without KVM the user need not fetch a kernel to learn that. */
static int check_accel(const struct tool_options *o, struct ward_err *e)
{
	char remedy[sizeof(e->remedy)];

	if (strcmp(o->accel, "kvm") != 0 || vm_probe_kvm(e) == 0)
		return 0;
	memcpy(remedy, e->remedy, sizeof(remedy));
	return ward_remedy(e,
			   "%s%sward vm template build --accel tcg, for runs with vm.accel: tcg: "
			   "emulation, slow and no hardware isolation",
			   remedy, *remedy ? "; or " : "");
}

static int find_parts(struct making *m, struct ward_err *e)
{
	const struct tool_options *o = m->o;
	bool made;
	int r = check_accel(o, e);

	if (r == 0)
		r = vm_boot_find(&m->boot, e);
	if (r == 0)
		r = vm_find_qemu(&m->qemu, e);
	if (r == 0)
		r = program_path("ward-vm", &m->ward_vm, e);
	if (r == 0)
		r = tool_root_make(o, o->image, m->root_key, &made, e);
	if (r == 0)
		r = vm_root_path(m->root_key, &m->root, e);
	if (r == 0) {
		const struct vm_kind kind = { m->boot.id, m->root_key,     o->accel,
					      m->qemu,    o->memory_bytes, (unsigned)o->cpus,
					      o->network };

		r = vm_template_key(&kind, m->key, e);
	}
	return r;
}

static int describe(const struct making *m, struct ward_err *e)
{
	auto_free char *path = path_join(m->work.path, "info");
	/* new: the sandbox may have put a link there */
	auto_file f = path ? fopen(path, "wxe") : NULL;
	char size[32];

	units_format_size(m->o->memory_bytes, size, sizeof(size));
	if (!f || fprintf(f, "image %s, kernel %s, %s, %s, %llu cpu%s%s\n", m->o->image,
			  m->boot.release, m->o->accel, size, (unsigned long long)m->o->cpus,
			  m->o->cpus > 1 ? "s" : "", m->o->network ? ", network" : "") < 0)
		return ward_fail_errno(e, "cannot describe the template");
	return 0;
}

/* Everything is there: the directory gets its name. */
static int commit(const struct making *m, struct ward_err *e)
{
	static const char *const files[] = { "ram", "state", "info" };
	char rest[SHA256_HEX + 32];
	auto_free char *place = NULL, *kept = path_join(m->work.path, "template");
	int r;

	snprintf(rest, sizeof(rest), VM_TEMPLATES "/%s", m->key);
	r = vm_path(rest, &place, e);
	if (r < 0)
		return r;
	if (!kept || mkdir(kept, 0755) < 0)
		return ward_fail_errno(e, "cannot make the template's directory");
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_free char *from = path_join(m->work.path, files[i]),
			       *to = path_join(kept, files[i]);

		if (!from || !to || tool_seal(from) < 0 || rename(from, to) < 0)
			return ward_fail_errno(e, "the template's %s is not there", files[i]);
	}
	if (remove_tree(place) < 0 || rename(kept, place) < 0)
		return ward_fail_errno(e, "cannot make %s", place);
	return 0;
}

static void forget(struct making *m)
{
	vm_boot_clear(&m->boot);
	tool_work_end(&m->work);
	free(m->qemu);
	free(m->ward_vm);
	free(m->root);
}

static int build(const struct tool_options *o)
{
	struct making m = { .o = o, .work = { .lock_fd = -1 } };
	struct ward_err e = { 0 };
	auto_strv words = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int r = find_parts(&m, &e);

	if (r == 0)
		r = tool_work_begin(&m.work, &e);
	if (r == 0) {
		tool_tell(o, "booting a machine, which takes seconds%s",
			  strcmp(o->accel, "tcg") == 0 ? " (tcg: no hardware isolation)" : "");
		add_words(&m, &words);
		r = words.failed ? ward_fail(&e, ENOMEM, "out of memory")
				 : tool_run_ward("the machine", words.items, &e);
	}
	if (r == 0)
		r = describe(&m, &e);
	if (r == 0)
		r = commit(&m, &e);
	if (r == 0 && o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "template", m.key);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (r == 0 && !o->quiet) {
		buf_printf(&out, "template %.12s is ready: matching runs start from it\n", m.key);
	}
	forget(&m);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
}

/* Removes every template whose name begins with that text ("": all of them). */
static int remove_named(const char *dir, const char *word, size_t *ret_count)
{
	auto_dir d = opendir(dir);

	*ret_count = 0;
	for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d)) {
		auto_free char *path =
			entry->d_name[0] != '.' && strncmp(entry->d_name, word, strlen(word)) == 0
				? path_join(dir, entry->d_name)
				: NULL;
		int r = path ? remove_tree(path) : 0;

		if (r < 0)
			return r;
		*ret_count += path != NULL;
	}
	return 0;
}

static int drop(const struct tool_options *o)
{
	struct ward_err e = { 0 };
	auto_free char *dir = NULL;
	int r = vm_path(VM_TEMPLATES, &dir, &e), code = EXIT_FINE;

	if (o->count < 2) {
		ward_fail(&e, EINVAL, "rm needs the name of a template, or all");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	for (size_t i = 1; i < o->count && r == 0; i++) {
		const char *word = o->words[i];
		bool all = strcmp(word, "all") == 0;
		size_t count = 0;

		if (!all && (strlen(word) < 6 || strspn(word, "0123456789abcdef") != strlen(word)))
			r = ward_fail(&e, EINVAL,
				      "%.100s is not the name of a template: give at least 6 of "
				      "its digits, or all",
				      *word ? word : "nothing");
		if (r == 0)
			r = remove_named(dir, all ? "" : word, &count);
		if (r < 0 && !e.code)
			ward_fail(&e, -r, "cannot remove %.100s: %s", word, strerror(-r));
		else if (r == 0 && !count && !all)
			r = ward_fail(&e, ENOENT, "there is no template %.100s", word);
		if (r < 0)
			code = say_error(&e, o->json, EXIT_REFUSED);
	}
	return code;
}

int tool_template(const struct tool_options *o)
{
	struct ward_err e = { 0 };
	const char *what = o->count ? o->words[0] : "";

	if (strcmp(what, "build") == 0 && o->count == 1)
		return build(o);
	if (strcmp(what, "ls") == 0 && o->count == 1)
		return tool_list(&(struct tool_options){ .json = o->json, .quiet = o->quiet });
	if (strcmp(what, "rm") == 0)
		return drop(o);
	ward_fail(&e, EINVAL, "template takes build, ls or rm NAME");
	return say_error(&e, o->json, EXIT_USAGE);
}
