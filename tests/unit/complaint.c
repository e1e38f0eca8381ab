/* What a failed command's last words complain about: messages as real programs write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "observe/complaint.h"
#include "observe/listeners.h"

struct row {
	const char *text;
	enum complaint_kind kind;
	const char *word; /* NULL: nothing is found */
};

static const struct row rows[] = {
	{ "cat: /home/me/x.csv: No such file or directory", COMPLAINT_ABSENT, "/home/me/x.csv" },
	{ "sh: 1: cannot open /srv/x: No such file", COMPLAINT_ABSENT, "/srv/x" },
	{ "FileNotFoundError: [Errno 2] No such file or directory: '/data/a b'", COMPLAINT_ABSENT,
	  "/data/a" },
	{ "Error: ENOENT: no such file or directory, open '/srv/t.json'", COMPLAINT_ABSENT,
	  "/srv/t.json" },
	{ "ls: cannot access '/srv/d': No such file or directory", COMPLAINT_ABSENT, "/srv/d" },
	{ "mkdir: cannot create directory \xe2\x80\x98/opt/x\xe2\x80\x99: No such file or "
	  "directory",
	  COMPLAINT_ABSENT, "/opt/x" },
	{ "open /srv/app.toml: no such file or directory.", COMPLAINT_ABSENT, "/srv/app.toml" },
	{ "sh: 1: cannot create /srv/x: Directory nonexistent", COMPLAINT_ABSENT, "/srv/x" },
	{ "bash: line 1: mytool: command not found", COMPLAINT_ABSENT, "mytool" },
	{ "exec: \"mytool\": executable file not found in $PATH", COMPLAINT_ABSENT, "mytool" },
	{ "Error: spawn mytool ENOENT", COMPLAINT_ABSENT, "mytool" },
	{ "env: \xe2\x80\x98mytool\xe2\x80\x99: No such file or directory", COMPLAINT_ABSENT,
	  "mytool" },
	{ "touch: cannot touch '/etc/x': Read-only file system", COMPLAINT_READ_ONLY, "/etc/x" },
	{ "sh: 1: cannot create ../x: Read-only file system", COMPLAINT_READ_ONLY, "../x" },
	{ "OSError: [Errno 30] Read-only file system: 'new'", COMPLAINT_READ_ONLY, "new" },
	{ "/bin/sh: 1: cannot create new: Permission denied", COMPLAINT_DENIED, "new" },
	{ "cat: .env: Permission denied", COMPLAINT_DENIED, ".env" },
	{ "ssh: Could not resolve hostname git.example: Name or service not known", COMPLAINT_SSH,
	  "git.example" },
	{ "git@git.example: Permission denied (publickey).", COMPLAINT_SSH, "git@git.example" },
	{ "Host key verification failed.", COMPLAINT_SSH, "" },
	{ "curl: (6) Could not resolve host: curl.invalid", COMPLAINT_HOST, "curl.invalid" },
	{ "fatal: unable to access 'https://git.invalid/a/': Could not resolve host: git.invalid",
	  COMPLAINT_HOST, "git.invalid" },
	{ "npm error request to https://r.invalid/x failed, reason: getaddrinfo EAI_AGAIN "
	  "r.invalid",
	  COMPLAINT_HOST, "r.invalid" },
	{ "E: Failed to fetch http://d.invalid/x  Temporary failure resolving 'd.invalid'",
	  COMPLAINT_HOST, "d.invalid" },
	{ "HTTPSConnectionPool(host='pip.invalid', port=443): Max retries exceeded", COMPLAINT_HOST,
	  "pip.invalid" },
	{ "wget: unable to resolve host address \xe2\x80\x98w.invalid\xe2\x80\x99", COMPLAINT_HOST,
	  "w.invalid" },
	{ "dial tcp: lookup go.invalid on 127.0.0.1:53: no such host", COMPLAINT_HOST,
	  "go.invalid" },
	{ "java.net.UnknownHostException: j.invalid", COMPLAINT_HOST, "j.invalid" },
	{ "socket.gaierror: [Errno -3] Temporary failure in name resolution", COMPLAINT_HOST, "" },
	{ "Error: connect ENETUNREACH 192.0.2.9:4321 - Local (0.0.0.0:0)", COMPLAINT_ADDRESS,
	  "192.0.2.9:4321" },
	{ "curl: (7) Failed to connect to 192.0.2.9 port 443 after 0 ms", COMPLAINT_ADDRESS,
	  "192.0.2.9:443" },
	{ "dial tcp 192.0.2.9:443: connect: network is unreachable", COMPLAINT_ADDRESS,
	  "192.0.2.9:443" },
	{ "MemoryError", COMPLAINT_MEMORY, "" },
	{ "terminate called after throwing an instance of 'std::bad_alloc'", COMPLAINT_MEMORY, "" },
	{ "FATAL ERROR: JavaScript heap out of memory", COMPLAINT_MEMORY, "" },
	{ "fork: Resource temporarily unavailable", COMPLAINT_PIDS, "" },
	{ "RuntimeError: can't start new thread", COMPLAINT_PIDS, "" },
	{ "OSError: [Errno 101] Network is unreachable", COMPLAINT_HOST, "" },
	{ "bash: line 1: ulimit: open files: cannot modify limit: Operation not permitted",
	  COMPLAINT_OPEN_FILES, "" },
	{ "OSError: [Errno 24] Too many open files: '/dev/null'", COMPLAINT_OPEN_FILES, "" },
	{ "tar: x: Wrote only 512 bytes\ncp: error writing 'x': No space left on device",
	  COMPLAINT_DISK, "" },
	{ "dpkg-shlibdeps: error: no dependency information found for /lib/libc.so.6",
	  COMPLAINT_NEEDS, "/var/lib/dpkg" },
	{ "java.nio.file.NoSuchFileException: /srv/app.toml", COMPLAINT_ABSENT, "/srv/app.toml" },
	{ "java.nio.file.AccessDeniedException: /srv/app.toml", COMPLAINT_DENIED, "/srv/app.toml" },
	{ "sqlite3.OperationalError: unable to open database file", COMPLAINT_UNNAMED, "" },
	{ "sqlite3.OperationalError: database or disk is full", COMPLAINT_DISK, "" },
	{ "There is insufficient memory for the Java Runtime Environment to continue.",
	  COMPLAINT_MEMORY, "" },
	{ "x.rb:1: can't create Thread: Resource temporarily unavailable (ThreadError)",
	  COMPLAINT_PIDS, "" },
	{ "fatal: could not read Username for 'https://git.example': No such device or address",
	  COMPLAINT_LOGIN, "git.example" },
	{ "fatal: Authentication failed for 'https://github.com/a/b/'", COMPLAINT_LOGIN,
	  "github.com" },
	{ "To get started with GitHub CLI, please run:  gh auth login", COMPLAINT_LOGIN, "" },
	{ "npm error code ENEEDAUTH", COMPLAINT_LOGIN, "" },
	{ "ModuleNotFoundError: No module named 'yaml.reader'", COMPLAINT_LIBRARY, "yaml" },
	{ "x.rb:1:in `require': cannot load such file -- rake/dsl (LoadError)", COMPLAINT_LIBRARY,
	  "rake" },
	{ "sh: 1: mytool: not found", COMPLAINT_COMMAND, "mytool" },
	{ "bash: line 1: mytool: command not found", COMPLAINT_COMMAND, "mytool" },
	{ "Error: listen EACCES: permission denied 0.0.0.0:80", COMPLAINT_SAYS, "" },
	{ "No module named '../../x'", 0, NULL },
	{ "all is well", 0, NULL },
	{ "", 0, NULL },
	{ "3 tests failed in /srv/project", 0, NULL },
};

static void test_messages(void **state)
{
	static struct complaint found[COMPLAINTS_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		size_t n = complaint_read((const uint8_t *)row->text, strlen(row->text), found);
		bool there = false;

		for (size_t k = 0; k < n; k++)
			there |= row->word && found[k].kind == row->kind &&
				 strcmp(found[k].word, row->word) == 0;
		if (there != (row->word != NULL) || (!row->word && n))
			fail_msg("%s: %zu found, the first is %s", row->text, n,
				 n ? found[0].word : "none");
	}
}

/* Bounded, each once, and nothing of a line that is cut or holds a NUL. */
static void test_bounds(void **state)
{
	static struct complaint found[COMPLAINTS_MAX];
	static uint8_t text[256 * 1024];
	size_t n = 0;

	(void)state;
	for (unsigned i = 0; n < sizeof(text) - 64; i++)
		n += (size_t)snprintf((char *)text + n, 64, "x: /p%u: No such file\n", i % 100);
	assert_int_equal(complaint_read(text, n, found), COMPLAINTS_MAX);
	for (size_t i = 0; i < COMPLAINTS_MAX; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(found[i].word, found[k].word);
	memset(text, '/', sizeof(text));
	assert_int_equal(complaint_read(text, sizeof(text), found), 0);
	memcpy(text, "ENOENT /a\0b", 11);
	assert_int_equal(complaint_read(text, 11, found), 0);
	memset(text, 'a', 1900);
	memcpy(text, "ENOENT /", 8);
	assert_int_equal(complaint_read(text, 1900, found), 0); /* no path is as long */
}

static void test_names_of_variables(void **state)
{
	static const struct {
		const char *text;
		bool there;
	} rows_of[] = {
		{ "KeyError: 'DB_URL'", true },
		{ "DB_URL", true },
		{ "set $DB_URL.", true },
		{ "DB_URL2 MY_DB_URL", false },
		{ "MY_DB_URL DB_URL", true },
		{ "", false },
		{ "DB_UR", false },
		{ "db_url", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows_of) / sizeof(rows_of[0]); i++)
		assert_int_equal(complaint_names((const uint8_t *)rows_of[i].text,
						 strlen(rows_of[i].text), "DB_URL"),
				 rows_of[i].there);
	assert_false(complaint_names(NULL, 0, "DB_URL"));
}

static void test_listening_lines(void **state)
{
	static const struct {
		const char *line;
		uint16_t port;
	} lines[] = {
		{ "   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:0", 0x1538 },
		{ "   0: 0100007F:1538 00000000:0000 01 00000000:00000000 00:0", 0 },
		{ "  sl  local_address rem_address   st tx_queue rx_queue tr tm", 0 },
		{ "  12: 00000000000000000000000000000000:0BB8 "
		  "00000000000000000000000000000000:0000 0A 0",
		  3000 },
		{ "", 0 },
		{ ":", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(listeners_read_line(lines[i].line), lines[i].port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_names_of_variables),
		cmocka_unit_test(test_listening_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
