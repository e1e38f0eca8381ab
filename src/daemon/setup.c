/*
 * Options and the directory of `ward serve`. In: argv; the state directory of ward. Out: a struct
 * setup, and files that only this user can read: the secret that tokens are made from, the
 * characters with which the names of this server's sandboxes begin, the policy of the template
 * "base". Run before the server's processes part.
 */
#include "daemon/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/io.h"
#include "daemon/control_access.h"

static const char base_policy[] =
	"# The template \"base\" of ward serve. A file base.yaml in the directory of --templates "
	"takes its place.\n"
	"version: 1\n"
	"process: {user: user}\n"
	"filesystem: {scratch: [/root, /run]}\n"
	"resources: {memory_limit: 2Gi, pids_limit: 1024, disk_limit: 2Gi}\n";

enum {
	OPT_STATE = 256,
	OPT_TEMPLATES,
	OPT_LISTEN,
	OPT_MOST,
	OPT_QUOTA,
	OPT_SNAPSHOTS,
	OPT_POOL,
	OPT_WARM,
	OPT_DEV,
	OPT_DEBUG,
	OPT_KEY,
	OPT_ROLE,
	OPT_LIMITS,
	OPT_RATE,
	OPT_TLS,
	OPT_TLS_CLIENTS,
	OPT_KEY_NAME,
	OPT_TTL,
	OPT_LIST_KEYS,
	OPT_DROP_KEY,
	OPT_JSON
};

static const struct option options[] = {
	{ "state", required_argument, NULL, OPT_STATE },
	{ "templates", required_argument, NULL, OPT_TEMPLATES },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "max", required_argument, NULL, OPT_MOST },
	{ "quota", required_argument, NULL, OPT_QUOTA },
	{ "snapshot-quota", required_argument, NULL, OPT_SNAPSHOTS },
	{ "pool", required_argument, NULL, OPT_POOL },
	{ "warm", required_argument, NULL, OPT_WARM },
	{ "dev", no_argument, NULL, OPT_DEV },
	{ "debug", no_argument, NULL, OPT_DEBUG },
	{ "add-key", required_argument, NULL, OPT_KEY },
	{ "role", required_argument, NULL, OPT_ROLE },
	{ "limits", required_argument, NULL, OPT_LIMITS },
	{ "tls-dir", required_argument, NULL, OPT_TLS },
	{ "tls-clients", no_argument, NULL, OPT_TLS_CLIENTS },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "key-name", required_argument, NULL, OPT_KEY_NAME },
	{ "ttl", required_argument, NULL, OPT_TTL },
	{ "list-keys", required_argument, NULL, OPT_LIST_KEYS },
	{ "drop-key", required_argument, NULL, OPT_DROP_KEY },
	{ "json", no_argument, NULL, OPT_JSON },
	{ 0 },
};

bool setup_is_about_keys(const struct setup *s)
{
	return s->add_key || s->list_keys || s->drop_key;
}

static int read_number(const char *name, const char *text, unsigned most, unsigned *ret,
		       struct ward_err *e)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value > most)
		return ward_fail(e, EINVAL, "--%s: a number up to %u, not \"%s\"", name, most,
				 text);
	*ret = (unsigned)value;
	return 0;
}

static int read_listen(const char *text, struct setup *s, struct ward_err *e)
{
	const char *colon = strrchr(text, ':');
	unsigned port;

	if (!colon || (size_t)(colon - text) >= sizeof(s->address))
		return ward_fail(e, EINVAL, "--listen: ADDRESS:PORT, not \"%s\"", text);
	snprintf(s->address, sizeof(s->address), "%.*s", (int)(colon - text), text);
	if (read_number("listen", colon + 1, 65535, &port, e) < 0)
		return -EINVAL;
	s->port = (uint16_t)port;
	return 0;
}

static int choose_dir(struct setup *s, const char *given, struct ward_err *e)
{
	const char *own = getenv("WARD_STATE_DIR"), *xdg = getenv("XDG_STATE_HOME"),
		   *home = getenv("HOME");
	char path[PATH_MAX];

	if (given)
		snprintf(path, sizeof(path), "%s", given);
	else if (own && *own)
		snprintf(path, sizeof(path), "%s/serve", own);
	else if (geteuid() == 0)
		snprintf(path, sizeof(path), "/var/lib/ward/serve");
	else if (xdg && *xdg == '/')
		snprintf(path, sizeof(path), "%s/ward/serve", xdg);
	else if (home && *home == '/')
		snprintf(path, sizeof(path), "%s/.local/state/ward/serve", home);
	else
		return ward_fail(e, EINVAL,
				 "no directory for the server: HOME is not set; give "
				 "one with --state");
	for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(path, 0755);
		*slash = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make %s", path);
	return realpath(path, s->dir) ? 0 : ward_fail_errno(e, "cannot open %s", path);
}

/* Options about keys. */
static int read_key_option(struct setup *s, int option, const char *word, struct ward_err *e)
{
	switch (option) {
	case OPT_KEY:
		s->add_key = optarg;
		return 0;
	case OPT_ROLE:
		s->role = optarg;
		return 0;
	case OPT_LIMITS:
		s->limits = optarg;
		return 0;
	case OPT_KEY_NAME:
		s->key_name = optarg;
		return 0;
	case OPT_TTL:
		return read_number("ttl", optarg, TOKEN_TTL_MAX_S, &s->ttl_s, e);
	case OPT_LIST_KEYS:
		s->list_keys = optarg;
		return 0;
	case OPT_DROP_KEY:
		s->drop_key = optarg;
		return 0;
	case OPT_JSON:
		s->json = true;
		return 0;
	default:
		return ward_fail(e, EINVAL, "not an option, or without its value: %s", word);
	}
}

static int check_keys(const struct setup *s, struct ward_err *e)
{
	char name[TEMPLATE_MAX + 1];

	if (s->add_key && (!*s->add_key || strlen(s->add_key) > OWNER_MAX))
		return ward_fail(e, EINVAL, "--add-key: the owner's name has 1 to %d characters",
				 OWNER_MAX);
	if (!s->add_key && (s->role || s->limits || s->key_name || s->ttl_s))
		return ward_fail(e, EINVAL,
				 "--role and --limits are about a new key: --add-key OWNER");
	if (s->key_name && strlen(s->key_name) >= sizeof(name))
		return ward_fail(e, EINVAL, "--name: at most %d characters", TEMPLATE_MAX);
	return 0;
}

int setup_read(int argc, char **argv, struct setup *s, struct ward_err *e)
{
	const char *dir = NULL, *pools = NULL, *warm = NULL;
	int o, r = 0;

	*s = (struct setup){ .address = "127.0.0.1",
			     .port = 3000,
			     .most = 1000,
			     .quota = 1000,
			     .least_memory = 256 << 20,
			     .snapshot_mib = 10240,
			     .rate = 1000,
			     .lock_fd = -1,
			     .snapshots_fd = -1 };
	opterr = 0;
	while (r == 0 && (o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == OPT_STATE)
			dir = optarg;
		else if (o == OPT_TEMPLATES)
			s->templates = optarg;
		else if (o == OPT_LISTEN)
			r = read_listen(optarg, s, e);
		else if (o == OPT_MOST)
			r = read_number("max", optarg, 4000, &s->most, e);
		else if (o == OPT_QUOTA)
			r = read_number("quota", optarg, 4000, &s->quota, e);
		else if (o == OPT_SNAPSHOTS)
			r = read_number("snapshot-quota", optarg, 1 << 30, &s->snapshot_mib, e);
		else if (o == OPT_POOL)
			pools = optarg;
		else if (o == OPT_WARM)
			warm = optarg;
		else if (o == OPT_DEV)
			s->dev = true;
		else if (o == OPT_DEBUG)
			s->debug = true;
		else if (o == OPT_TLS)
			s->tls_dir = optarg;
		else if (o == OPT_TLS_CLIENTS)
			s->tls_clients = true;
		else if (o == OPT_RATE)
			r = read_number("rate", optarg, 1000000, &s->rate, e);
		else
			r = read_key_option(s, o, argv[optind - 1], e);
	}
	if (r == 0 && optind < argc)
		r = ward_fail(e, EINVAL, "ward serve takes no argument: %s", argv[optind]);
	if (r == 0 && s->tls_clients && !s->tls_dir) {
		r = ward_fail(e, EINVAL, "--tls-clients needs TLS");
		ward_remedy(e, "--tls-dir DIR, with DIR/cert.pem, DIR/key.pem and DIR/clients.pem");
	}
	if (r == 0)
		r = check_keys(s, e);
	if (r == 0)
		r = setup_read_pools(s, pools, warm, e);
	return r < 0 ? r : choose_dir(s, dir, e);
}

static void hex(const uint8_t *bytes, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

/* A file of n random bytes that is made once. */
static int keep_random(const struct setup *s, const char *name, uint8_t *ret, size_t n,
		       struct ward_err *e)
{
	char path[PATH_MAX + 32], temporary[PATH_MAX + 64];
	auto_fd fd = -1;

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		return io_read_exactly(fd, ret, n) == 0
			       ? 0
			       : ward_fail(e, EINVAL, "%s is damaged; remove it", path);
	if (errno != ENOENT)
		return ward_fail_errno(e, "cannot read %s", path);
	if (getrandom(ret, n, 0) != (ssize_t)n)
		return ward_fail_errno(e, "no random bytes");
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	(void)unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || io_write_all(fd, ret, n) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0)
		return ward_fail_errno(e, "cannot write %s", path);
	return 0;
}

static int write_base(struct setup *s, struct ward_err *e)
{
	auto_fd fd = -1;

	snprintf(s->base, sizeof(s->base), "%.4000s/base.yaml", s->dir);
	snprintf(s->workspace, sizeof(s->workspace), "%.4000s/workspace", s->dir);
	if (mkdir(s->workspace, 0755) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make %s", s->workspace);
	fd = open(s->base, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || io_write_all(fd, base_policy, sizeof(base_policy) - 1) < 0)
		return ward_fail_errno(e, "cannot write %s", s->base);
	return 0;
}

static int open_snapshots(struct setup *s, struct ward_err *e)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/snapshots", s->dir);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return ward_fail_errno(e, "cannot make %s", path);
	s->snapshots_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return s->snapshots_fd < 0 ? ward_fail_errno(e, "cannot open %s", path) : 0;
}

/* SQLite would make it with the rights of the umask; its log takes the rights that this one has. */
static int make_registry(const struct setup *s, struct ward_err *e)
{
	char path[PATH_MAX + 32];
	auto_fd fd = -1;

	snprintf(path, sizeof(path), "%s/registry.db", s->dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fchmod(fd, 0600) < 0)
		return ward_fail_errno(e, "cannot open %s", path);
	return 0;
}

static int add_key(struct setup *s, const char *key, const struct access_who *who,
		   struct ward_err *e)
{
	char file[PATH_MAX + 32];
	sqlite3 *db = NULL;
	int r;

	snprintf(file, sizeof(file), "%s/registry.db", s->dir);
	r = registry_open(file, &db, e);
	if (r < 0)
		return r;
	r = registry_add_credential(db, key, who);
	sqlite3_close(db);
	return r < 0 ? ward_fail(e, EIO, "cannot write the key into %s", file) : 0;
}

/* It stays the same from start to start, with the tokens that were made with it. */
static int add_dev_key(struct setup *s, struct ward_err *e)
{
	struct access_who who = { .owner = "dev", .role = ROLE_ADMIN };
	char unused[SECRET_MAX + 1];

	who.made_ms = front_now_ms();
	if (!access_make_secret(unused, who.id))
		return ward_fail(e, EIO, "no random bytes");
	return add_key(s, s->dev_key, &who, e);
}

int setup_prepare(struct setup *s, struct ward_err *e)
{
	char path[PATH_MAX + 32];
	uint8_t bytes[20];
	int r = keep_random(s, "secret", s->secret, sizeof(s->secret), e);

	if (r == 0)
		r = keep_random(s, "tag", bytes, TAG, e);
	if (r == 0)
		r = make_registry(s, e);
	if (r < 0)
		return r;
	for (int i = 0; i < TAG; i++)
		s->tag[i] = "abcdefghijklmnopqrstuvwxyz012345"[bytes[i] % 32];
	if (setup_is_about_keys(s))
		return 0;
	snprintf(path, sizeof(path), "%s/lock", s->dir);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return ward_fail_errno(e, "cannot open %s", path);
	/* the processes of a server that was killed take a moment to end */
	for (int tries = 0; (r = flock(s->lock_fd, LOCK_EX | LOCK_NB)) < 0 && tries < 100; tries++)
		usleep(50000);
	if (r < 0)
		return ward_fail(e, EBUSY,
				 "another ward serve uses %s; give this one a directory "
				 "of its own with --state",
				 s->dir);
	r = write_base(s, e);
	if (r == 0)
		r = open_snapshots(s, e);
	if (r == 0 && s->dev) {
		r = keep_random(s, "dev-key", bytes, sizeof(bytes), e);
		snprintf(s->dev_key, sizeof(s->dev_key), "e2b_");
		hex(bytes, sizeof(bytes), s->dev_key + 4);
		if (r == 0)
			r = add_dev_key(s, e);
	}
	return r;
}

/* Role and limits of a new key. */
static int read_key(const struct setup *s, struct access_who *ret, struct ward_err *e)
{
	struct access_request q = { .who.role = ROLE_ADMIN };

	if (s->limits &&
	    !access_read_request((const uint8_t *)s->limits, strlen(s->limits), true, &q)) {
		ward_fail(e, EINVAL, "--limits: %s", q.wrong);
		return ward_remedy(e, "an object like {\"sources\": [\"10.0.0.0/8\"], \"hours\": "
				      "\"08:00-18:00\"}");
	}
	if (s->role)
		q.who.role = access_role_find(s->role);
	if (q.who.role == ROLE_NONE)
		return ward_fail(e, EINVAL,
				 "--role: viewer, runner, operator, approver or admin, not \"%s\"",
				 s->role);
	*ret = q.who;
	return 0;
}

int setup_add_key(struct setup *s, struct ward_err *e)
{
	char key[SECRET_MAX + 1];
	struct access_who who;
	int r = read_key(s, &who, e);

	if (r < 0)
		return r;
	if (!access_make_secret(key, who.id))
		return ward_fail(e, EIO, "no random bytes");
	snprintf(who.owner, sizeof(who.owner), "%s", s->add_key);
	if (s->key_name)
		snprintf(who.name, sizeof(who.name), "%s", s->key_name);
	who.made_ms = front_now_ms();
	if (s->ttl_s)
		who.expires_ms = who.made_ms + 1000 * (int64_t)s->ttl_s;
	r = add_key(s, key, &who, e);
	if (r == 0)
		puts(key); /* the only time: the registry has its digest */
	return r;
}
