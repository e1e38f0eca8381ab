/* The spec: precedence, trust, narrowing, files that are no policies, workspaces that are none. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/io.h"
#include "base/sha256_internal.h"
#include "plan/spec.h"

static char root[] = "/tmp/ward-test-spec-XXXXXX";

static void write_text(const char *path, const char *text)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
}

/* A fresh project to stand in, and a fresh state directory. */
static int setup(void **state)
{
	auto_free char *dir = NULL, *state_dir = NULL;
	static int count;

	(void)state;
	if (asprintf(&dir, "%s/%d", root, ++count) < 0 || asprintf(&state_dir, "%s/state", dir) < 0)
		return -1;
	if (mkdir(dir, 0700) < 0 || chdir(dir) < 0)
		return -1;
	return mkdir("project", 0755) | mkdir("home", 0755) | mkdir("state", 0700) |
	       chdir("project") | setenv("HOME", "/nonexistent", 1) |
	       setenv("WARD_STATE_DIR", state_dir, 1);
}

struct outcome {
	int r;
	struct spec s;
	struct policy_errors errors;
	struct ward_err e;
};

static void build(const struct spec_request *r, struct outcome *o)
{
	*o = (struct outcome){ 0 };
	o->r = spec_build(r, &o->s, &o->errors, &o->e);
}

static void clear(struct outcome *o)
{
	spec_clear(&o->s);
	strv_free(&o->errors.lines);
}

static void expect_refused(const struct spec_request *r, int code, const char *why,
			   const char *remedy)
{
	struct outcome o;

	build(r, &o);
	if (o.r != -code || !strstr(o.e.why, why) || !strstr(o.e.remedy, remedy))
		fail_msg("%d (wanted %d)\nwhy: %s\nremedy: %s", o.r, -code, o.e.why, o.e.remedy);
	clear(&o);
}

static void expect_accepted(const struct spec_request *r, struct outcome *o)
{
	build(r, o);
	if (o->r < 0)
		fail_msg("%s: %s", o->e.why, o->errors.lines.len ? o->errors.lines.items[0] : "");
}

static void test_sha256(void **state)
{
	static const struct {
		const char *text, *hex;
	} cases[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
		  "klmnopqrlmnopqrsmnopqrstnopqrstu",
		  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};
	auto_buf million = { 0 };
	char hex[SHA256_HEX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		sha256_hex(cases[i].text, strlen(cases[i].text), hex);
		assert_string_equal(hex, cases[i].hex);
	}
	for (int i = 0; i < 1000000; i++)
		buf_add(&million, "a", 1);
	sha256_hex(million.data, million.len, hex);
	assert_string_equal(hex,
			    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The processor's way and the plain one say the same of any blocks. */
static void test_sha256_ways(void **state)
{
	uint8_t blocks[16 * SHA256_BLOCK];
	uint32_t seed = 1;

	(void)state;
	if (!sha256_is_fast())
		skip();
	for (int round = 0; round < 500; round++) {
		uint32_t plain[8], fast[8];
		size_t count = (size_t)round % 16 + 1;

		for (size_t i = 0; i < sizeof(blocks); i++) {
			seed = seed * 1664525 + 1013904223;
			blocks[i] = (uint8_t)(seed >> 24);
		}
		memcpy(plain, blocks + (round & 31), sizeof(plain));
		memcpy(fast, plain, sizeof(fast));
		sha256_mix_plain(plain, blocks, count);
		sha256_mix_fast(fast, blocks, count);
		assert_memory_equal(plain, fast, sizeof(plain));
	}
}

static void test_no_file(void **state)
{
	const struct spec_option options[] = {
		{ "resources.pids_limit", "none", "--pids", false, false, false },
		{ "filesystem.host_mounts", "../home", "--ro", true, false, false }
	};
	struct spec_request r = { .options = options, .option_count = 2 };
	auto_free char *here = getcwd(NULL, 0);
	struct outcome o;

	(void)state;
	expect_accepted(&r, &o);
	assert_null(o.s.policy_file);
	assert_string_equal(o.s.workspace, here);
	assert_string_equal(o.s.cwd, here);
	assert_true(o.s.policy.res_pids == POLICY_NONE);
	assert_int_equal(o.s.policy.fs_host_mounts.items[0].path[0], '/');
	assert_null(strstr(o.s.policy.fs_host_mounts.items[0].path, ".."));
	clear(&o);
}

static void test_found_file(void **state)
{
	struct spec_request r = { 0 };
	struct outcome o;

	(void)state;
	write_text("ward.yaml", "resources: {pids_limit: 64}\nfilesystem: {mode: read_only}\n");
	expect_accepted(&r, &o);
	assert_non_null(strstr(o.s.policy_file, "/project/ward.yaml"));
	assert_int_equal(o.s.policy.res_pids, 64);
	assert_int_equal(o.s.policy.origin[POLICY_F_res_pids].source, POLICY_FILE);
	clear(&o);
	r.workspace = "../project";
	expect_accepted(&r, &o);
	assert_int_equal(o.s.policy.res_pids, 64);
	clear(&o);
	write_text("ward.json", "{}");
	expect_refused(&r, EEXIST, "both a ward.yaml and a ward.json", "-p FILE");
	unlink("ward.yaml");
	expect_accepted(&r, &o);
	clear(&o);
	rename("ward.json", "ward.yml");
	expect_refused(&r, EINVAL, "ward.yml, which ward does not read", "rename it to ward.yaml");
}

static void test_errors(void **state)
{
	struct spec_request r = { 0 };
	struct outcome o;

	(void)state;
	write_text("ward.yaml", "a: 1\nb: 2\n");
	build(&r, &o);
	assert_int_equal(o.r, -EINVAL);
	assert_int_equal(o.errors.lines.len, 2);
	assert_true(strncmp(o.errors.lines.items[1], "ward.yaml:2:1: ", 15) == 0);
	clear(&o);
}

/* What ward trust does after a yes. */
static int trust(const char *path, size_t *ret_wider, char hex[SHA256_HEX])
{
	struct policy_errors errors = { 0 };
	struct spec_content c = { 0 };
	struct ward_err e = { 0 };
	int r = spec_content_read(path, NULL, &c, &errors, &e);

	if (r == 0)
		r = spec_content_accept(&c, &e);
	*ret_wider = c.wider.len;
	memcpy(hex, c.hex, SHA256_HEX);
	spec_content_clear(&c);
	strv_free(&errors.lines);
	return r;
}

static void test_trust(void **state)
{
	struct spec_request r = { 0 };
	char hex[SHA256_HEX], again[SHA256_HEX], content[SHA256_HEX];
	static const char text[] =
		"resources: {pids_limit: 4096}\nfilesystem: {host_mounts: [../home]}\n";
	struct outcome o;
	size_t wider;

	(void)state;
	write_text("ward.yaml", text);
	expect_refused(&r, EACCES, "resources.pids_limit: 1024 -> 4096", "ward trust /");
	expect_refused(&r, EACCES, "filesystem.host_mounts: [] -> [{path: ", "ward trust /");
	r.policy_file = "ward.yaml"; /* the user's own word */
	expect_accepted(&r, &o);
	assert_non_null(strstr(o.s.policy.fs_host_mounts.items[0].path, "/home"));
	clear(&o);
	r.policy_file = NULL;
	assert_int_equal(trust("ward.yaml", &wider, hex), 0);
	assert_int_equal(wider, 2);
	sha256_hex(text, strlen(text),
		   content); /* a file alone: its own digest, as init writes it */
	assert_string_equal(hex, content);
	expect_accepted(&r, &o);
	clear(&o);
	assert_int_equal(trust("ward.yaml", &wider, again), 0);
	assert_string_equal(hex, again);
	write_text("ward.yaml",
		   "resources: {pids_limit: 4096}\nfilesystem: {host_mounts: [../home ]}\n");
	expect_refused(&r, EACCES, "widens the defaults", "ward trust"); /* one byte more */
	write_text("ward.yaml", "nonsense: 1\n");
	assert_int_equal(trust("ward.yaml", &wider, again), -EINVAL);
}

/* Two files that are accepted together; neither counts beside another content of the other. */
static void test_trust_of_several(void **state)
{
	struct spec_request r = { 0 };
	char hex[SHA256_HEX];
	struct outcome o;
	size_t wider;

	(void)state;
	write_text("ward.yaml", "extends: base.yaml\n");
	write_text("base.yaml", "resources: {pids_limit: 4096}\n");
	expect_refused(&r, EACCES, "resources.pids_limit: 1024 -> 4096", "ward trust /");
	assert_int_equal(trust("base.yaml", &wider, hex), 0); /* alone it is not what was meant */
	expect_refused(&r, EACCES, "resources.pids_limit", "ward trust /");
	assert_int_equal(trust("ward.yaml", &wider, hex), 0);
	assert_int_equal(wider, 1);
	expect_accepted(&r, &o);
	assert_int_equal(o.s.policy.res_pids, 4096);
	assert_int_equal(o.s.policy.origin[POLICY_F_res_pids].file, 1);
	assert_string_equal(o.s.files.items[0], "base.yaml");
	assert_string_equal(o.s.digest, hex);
	clear(&o);
	write_text("base.yaml", "resources: {pids_limit: 4097}\n");
	expect_refused(&r, EACCES, "-> 4097", "ward trust /");
	r.policy_file = "ward.yaml"; /* that names one of the two */
	expect_refused(&r, EACCES, "a file in the workspace that was not named", "ward trust /");
	write_text("base.yaml", "resources: {pids_limit: 7}\n");
	expect_accepted(&r, &o);
	clear(&o);
}

static void test_narrowing(void **state)
{
	const struct spec_option options[] = {
		{ "resources.pids_limit", "65", "--pids", false, false, false },
		{ "resources.memory_limit", "5Mi", "--memory", false, false, false },
		{ "process.env", "SECRET", "--env", true, false, false },
	};
	struct spec_request r = { .policy_file = "p.yaml", .options = options, .option_count = 3 };
	struct outcome o;

	(void)state;
	write_text("p.yaml", "resources: {pids_limit: 64, memory_limit: 16Mi}\n");
	expect_refused(&r, EACCES, "resources.pids_limit: 64 -> 65 (--pids)", "--widen");
	expect_refused(&r, EACCES, "process.env: adds SECRET (--env)", "--widen");
	r.widen = true;
	expect_accepted(&r, &o);
	assert_int_equal(o.s.policy.res_pids, 65);
	clear(&o);
	r = (struct spec_request){ .policy_file = "p.yaml",
				   .options = &options[1],
				   .option_count = 1 };
	expect_accepted(&r, &o);
	assert_int_equal(o.s.policy.res_memory, 5 << 20);
	assert_int_equal(o.s.policy.origin[POLICY_F_res_memory].source, POLICY_CLI);
	clear(&o);
}

static void test_bad_option(void **state)
{
	const struct spec_option options[] = { { "resources.pids_limit", "-1", "--pids", false,
						 false, false } };
	struct spec_request r = { .options = options, .option_count = 1 };
	struct outcome o;

	(void)state;
	build(&r, &o);
	assert_int_equal(o.r, -EINVAL);
	assert_string_equal(o.e.what, "--pids");
	clear(&o);
}

static void test_unsupported(void **state)
{
	struct spec_request r = { .policy_file = "p.yaml" };

	(void)state;
	write_text("p.yaml", "tools: t.yaml\nfilesystem: {mode: review}\n");
	expect_refused(&r, ENOTSUP, "tools: ", "");
}

/* Whatever is named ward.yaml: nothing hangs, nothing is followed out. */
static void test_strange_files(void **state)
{
	struct spec_request r = { 0 };
	auto_buf large = { 0 };
	struct outcome o;

	(void)state;
	assert_int_equal(mkfifo("ward.yaml", 0600), 0);
	expect_refused(&r, EINVAL, "not a regular file", "");
	r.policy_file = "ward.yaml";
	expect_refused(&r, EINVAL, "not a regular file", "");
	r.policy_file = NULL;
	unlink("ward.yaml");
	assert_int_equal(mkdir("ward.yaml", 0700), 0);
	expect_refused(&r, EINVAL, "not a regular file", "");
	rmdir("ward.yaml");
	write_text("../outside.yaml", "");
	assert_int_equal(symlink("../outside.yaml", "ward.yaml"), 0);
	expect_refused(&r, EPERM, "a link that is broken or leads out", "-p FILE");
	unlink("ward.yaml");
	assert_int_equal(symlink("nothing", "ward.yaml"), 0);
	expect_refused(&r, EPERM, "a link that is broken or leads out", "-p FILE");
	write_text("nothing", "resources: {pids_limit: 5}\n");
	expect_accepted(&r, &o);
	assert_int_equal(o.s.policy.res_pids, 5);
	clear(&o);
	unlink("ward.yaml");
	for (int i = 0; i < 70000; i++)
		buf_puts(&large, "# sixteen bytes\n");
	write_text("ward.yaml", large.data);
	expect_refused(&r, EFBIG, "larger than 1 MiB", "");
	r.policy_file = "/dev/zero";
	expect_refused(&r, EINVAL, "not a regular file", "");
	r.policy_file = "missing.yaml";
	expect_refused(&r, ENOENT, "cannot open the policy file missing.yaml", "ward init");
	r.policy_file = "";
	expect_refused(&r, ENOENT, "cannot open the policy file", "");
}

static void test_workspace(void **state)
{
	struct spec_request r = { .policy_file = "conf/p.yaml" };
	auto_free char *home = realpath("../home", NULL);
	struct outcome o;

	(void)state;
	mkdir("conf", 0700);
	mkdir("conf/sub", 0700);
	write_text("conf/p.yaml", "filesystem: {workspace: sub}\n");
	expect_accepted(&r, &o); /* relative to the file */
	assert_non_null(strstr(o.s.workspace, "/project/conf/sub"));
	assert_string_equal(o.s.cwd, o.s.workspace);
	clear(&o);
	r.workspace = "conf";
	expect_refused(&r, EACCES, "-w names another directory", "--widen");
	r.widen = true;
	expect_accepted(&r, &o);
	assert_non_null(strstr(o.s.workspace, "/project/conf"));
	clear(&o);
	write_text("conf/p.yaml", "filesystem: {workspace: /nonexistent/agent}\n");
	r = (struct spec_request){ .policy_file = "conf/p.yaml" };
	expect_refused(&r, ENOENT, "the workspace /nonexistent/agent cannot be used: No such file",
		       "mkdir -p /nonexistent/agent");
	r = (struct spec_request){ .workspace = "/" };
	expect_refused(&r, EPERM, "a system directory", "-w DIR");
	r.workspace = "/usr/../etc/";
	expect_refused(&r, EPERM, "/etc is a system directory", "-w DIR");
	r.workspace = "/proc/self";
	expect_refused(&r, EPERM, "a kernel file system", "");
	r.workspace = "/etc/passwd";
	expect_refused(&r, ENOTDIR, "is not a directory", "");
	setenv("HOME", home, 1);
	r.workspace = "../home/.";
	expect_refused(&r, EPERM, "the home directory", "");
	r.workspace = "..";
	expect_refused(&r, EPERM, "above the home directory", "");
	assert_int_equal(symlink(home, "link"), 0);
	r.workspace = "link";
	expect_refused(&r, EPERM, "the home directory", "");
	assert_int_equal(symlink("conf", "inner"), 0);
	r.workspace = "inner";
	expect_accepted(&r, &o);
	assert_non_null(strstr(o.s.workspace, "/project/conf"));
	assert_string_equal(o.s.cwd, o.s.workspace);
	clear(&o);
}

static void test_cwd(void **state)
{
	struct spec_request r = { 0 };
	auto_free char *here = getcwd(NULL, 0);
	struct outcome o;

	(void)state;
	mkdir("sub", 0700);
	r.workspace = here;
	assert_int_equal(chdir("sub"), 0);
	expect_accepted(&r, &o); /* the caller stands inside */
	assert_non_null(strstr(o.s.cwd, "/project/sub"));
	clear(&o);
	assert_int_equal(chdir("../../home"), 0);
	expect_accepted(&r, &o);
	assert_string_equal(o.s.cwd, here);
	clear(&o);
	r.cwd = "sub";
	expect_accepted(&r, &o);
	assert_non_null(strstr(o.s.cwd, "/project/sub"));
	clear(&o);
	r.cwd = "/tmp"; /* of the sandbox */
	expect_accepted(&r, &o);
	assert_string_equal(o.s.cwd, "/tmp");
	clear(&o);
	r.cwd = "../home";
	expect_refused(&r, EXDEV, "leaves the workspace", "");
	r.cwd = "missing";
	expect_refused(&r, ENOENT, "cannot open missing", "");
}

static void test_deleted_cwd(void **state)
{
	auto_free char *here = getcwd(NULL, 0);
	struct spec_request r = { 0 };
	struct outcome o;

	(void)state;
	assert_int_equal(mkdir("gone", 0700) | chdir("gone"), 0);
	assert_int_equal(rmdir("../gone"), 0);
	expect_refused(&r, ENOENT, "the current directory no longer exists", "cd to a directory");
	r.workspace = here;
	expect_accepted(&r, &o);
	assert_string_equal(o.s.cwd, here);
	clear(&o);
	assert_int_equal(chdir(here), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sha256),
		cmocka_unit_test(test_sha256_ways),
		cmocka_unit_test_setup(test_no_file, setup),
		cmocka_unit_test_setup(test_found_file, setup),
		cmocka_unit_test_setup(test_errors, setup),
		cmocka_unit_test_setup(test_trust, setup),
		cmocka_unit_test_setup(test_trust_of_several, setup),
		cmocka_unit_test_setup(test_narrowing, setup),
		cmocka_unit_test_setup(test_bad_option, setup),
		cmocka_unit_test_setup(test_unsupported, setup),
		cmocka_unit_test_setup(test_strange_files, setup),
		cmocka_unit_test_setup(test_workspace, setup),
		cmocka_unit_test_setup(test_cwd, setup),
		cmocka_unit_test_setup(test_deleted_cwd, setup),
	};
	auto_free char *command = NULL;
	int failed;

	if (!mkdtemp(root))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (chdir("/") < 0 || asprintf(&command, "rm -rf %s", root) < 0 || system(command) != 0)
		return 1;
	return failed;
}
