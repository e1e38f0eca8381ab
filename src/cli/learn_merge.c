/*
 * What was learned, into a policy that is there already. In: the additions. Out: `ward policy add`
 * with all of them at once, which changes nothing else in the file, shows the difference and asks.
 * It is started as a program of its own, as the user would; it is passed that nothing here is a
 * secret, because ward learn has judged every path already.
 */
#include "cli/learn.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void add(struct strv *argv, const char *field, const char *value)
{
	strv_add(argv, field);
	strv_add(argv, value);
}

/* "host:port" without the quotes of a document. */
static void add_rule(struct strv *argv, const char *rule)
{
	size_t n = strlen(rule);

	strv_add(argv, "network.egress_allowlist");
	if (n > 2 && *rule == '"')
		strv_addf(argv, "%.*s", (int)(n - 2), rule + 1);
	else
		strv_add(argv, rule);
}

static void put_additions(const struct learn_policy *p, const struct policy *base,
			  struct strv *argv)
{
	for (size_t i = 0; i < p->mount_count; i++) {
		auto_buf text = { 0 };

		if (learn_mount_text(&p->mounts[i], &text))
			add(argv, "filesystem.host_mounts", buf_text(&text));
	}
	for (size_t i = 0; i < p->toolchains.len; i++)
		if (!strv_has(&base->toolchains, p->toolchains.items[i]))
			add(argv, "toolchains", p->toolchains.items[i]);
	for (size_t i = 0; i < p->programs.len; i++)
		add(argv, "filesystem.programs", p->programs.items[i]);
	if (p->writes && base->fs_mode == FS_MODE_READ_ONLY)
		add(argv, "filesystem.mode", "read_write");
	if (p->rules.len && base->net_mode == NET_MODE_NONE)
		add(argv, "network.mode", "restricted");
	for (size_t i = 0; i < p->rules.len; i++)
		add_rule(argv, p->rules.items[i]);
	if (p->build && base->proc_syscalls != SYSCALLS_BUILD)
		add(argv, "process.syscalls", "build");
}

int learn_merge(const struct learn_policy *p, const struct policy *base, const struct options *o)
{
	static const char *const first[] = { "ward", "policy", "add", "-p" };
	auto_strv argv = { 0 };
	size_t before;
	int status;
	pid_t pid;

	for (size_t i = 0; i < ARRAY_LEN(first); i++)
		strv_add(&argv, first[i]);
	strv_add(&argv, o->merge);
	strv_add(&argv, "--secrets");
	if (o->yes)
		strv_add(&argv, "--yes");
	before = argv.len;
	put_additions(p, base, &argv);
	if (argv.failed)
		return EXIT_REFUSED;
	if (argv.len == before)
		return EXIT_FINE; /* it had everything */
	pid = fork();
	if (pid == 0) {
		execv("/proc/self/exe", argv.items);
		_exit(EXIT_REFUSED);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_REFUSED;
}
