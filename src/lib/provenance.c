/*
 * What is known about the processes of a sandbox and the files that they change. In: observed calls (observe.h) in their order, names and their addresses inside from the gateway. Out: for each path the processes that
 * opened it for writing, made, renamed or removed it, and for each process the hosts whose answers may have reached it. Runs in the supervisor at audit.level: full; tables are bounded, what is beyond is counted.
 *
 * What may have been read goes along: from a parent to the processes that it forks; through a pipe from a program's standard output to whoever has it as standard input, and to its parent (which
 * collects it); from a file to who opens or executes it after somebody who had read from the network opened it for writing. Whose parent is gone has read whatever anybody had. Not followed: Unix sockets, shared
 * memory, descriptors that are handed over, pipes at other numbers than 0 and 1, signals and times.
 */
#include "lib/provenance_internal.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"

#define CHECK_MS 1000	/* a number that was not seen for so long may be another process's */
#define WORDS_KEPT 1024

struct provenance *provenance_create(const struct plan *p, int upper_fd)
{
	struct provenance *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->plan = p;
	v->upper_fd = upper_fd;
	v->processes = calloc(PROCESSES_MAX, sizeof(*v->processes));	/* what is not used is not touched */
	v->files = calloc(FILES_MAX, sizeof(*v->files));
	v->slots = calloc(SLOTS, sizeof(*v->slots));
	if (v->processes && v->files && v->slots)
		return v;
	provenance_destroy(v);
	return NULL;
}

void provenance_destroy(struct provenance *v)
{
	if (!v)
		return;
	for (uint32_t i = 0; v->processes && i < v->process_count; i++) {
		free(v->processes[i].exe);
		free(v->processes[i].words);
	}
	for (uint32_t i = 0; v->files && i < v->file_count; i++)
		free(v->files[i].path);
	for (unsigned i = 0; i < v->host_count; i++)
		free(v->hosts[i]);
	free(v->processes);
	free(v->files);
	free(v->slots);
	free(v->names);
	free(v);
}

/* ---- processes ---- */

struct status {
	pid_t tgid, parent;
	int inner;	/* 0: it is not inside */
};

static long number_after(const char *text, const char *key, unsigned place)
{
	const char *at = strstr(text, key);
	long number = 0;

	at = at ? at + strlen(key) : "";
	for (unsigned i = 0; i <= place; i++) {
		char *end;

		at += strspn(at, "\t ");
		if (*at < '0' || *at > '9')
			return 0;
		number = strtol(at, &end, 10);
		at = end;
	}
	return number;
}

static bool read_status(pid_t tid, struct status *ret)
{
	char path[32], text[2048];
	auto_fd fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	*ret = (struct status){ .tgid = (pid_t)number_after(text, "\nTgid:", 0), .parent = (pid_t)number_after(text, "\nPPid:", 0),
				.inner = (int)number_after(text, "\nNStgid:", 1) };
	return ret->tgid > 0;
}

/* The last process that had this number. */
static uint32_t find_process(const struct provenance *v, pid_t pid)
{
	for (uint32_t i = v->process_count; i-- > 0;)
		if (v->processes[i].pid == pid)
			return i;
	return NOBODY;
}

static uint64_t all_hosts(const struct provenance *v)
{
	return v->host_count == HOSTS_MAX ? UINT64_MAX : (UINT64_C(1) << v->host_count) - 1;
}

/* What a descriptor of the process's is called. False: nothing. */
static bool read_descriptor(pid_t tid, int fd, char out[PATH_MAX])
{
	char path[40];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	n = readlink(path, out, PATH_MAX - 1);
	if (n <= 0)
		return false;
	out[n] = '\0';
	return true;
}

/* The pipe that it is; 0: none. */
static uint64_t read_pipe(pid_t tid, int fd)
{
	unsigned long long inode = 0;
	char link[PATH_MAX];

	return read_descriptor(tid, fd, link) && sscanf(link, "pipe:[%llu]", &inode) == 1 ? inode : 0;
}

static void set_program(struct process *p, const char *exe, const char *words, size_t len)
{
	char *kept;

	if (len > WORDS_KEPT) {
		len = WORDS_KEPT;
		while (len && words[len - 1])
			len--;
	}
	kept = len ? malloc(len) : NULL;
	if (kept)
		memcpy(kept, words, len);
	free(p->exe);
	free(p->words);
	p->exe = strdup(exe);
	p->words = kept;
	p->words_len = kept ? len : 0;
}

/* A program whose start was not seen: the first of each command is ward-init's doing. */
static void read_program(struct process *p)
{
	char path[40], exe[512], words[WORDS_KEPT];
	auto_fd fd = -1;
	ssize_t n, len;

	p->stale = false;
	snprintf(path, sizeof(path), "/proc/%d/exe", p->pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", p->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, words, sizeof(words));
	if (n <= 0)
		return;
	exe[n] = '\0';
	if (len == (ssize_t)sizeof(words))
		words[len - 1] = '\0';
	set_program(p, exe, words, len > 0 ? (size_t)len : 0);
	p->in_pipe = read_pipe(p->pid, 0);
	p->out_pipe = read_pipe(p->pid, 1);
}

/* A process that was not seen before: it has what its parent has. */
static uint32_t add_process(struct provenance *v, const struct status *s)
{
	uint32_t at = v->process_count;
	struct process *p = &v->processes[at];
	struct status parent;

	if (at == PROCESSES_MAX)
		return NOBODY;
	*p = (struct process){ .pid = s->tgid, .inner = s->inner, .parent = find_process(v, s->parent) };
	v->process_count++;
	if (read_status(s->parent, &parent))
		p->parent_inner = parent.inner;
	if (p->parent == NOBODY && p->parent_inner > 1) {	/* one that only forks and waits is seen first through its children */
		uint32_t grand = add_process(v, &parent);

		p = &v->processes[at];
		p->parent = grand;
	}
	if (p->parent != NOBODY) {
		const struct process *from = &v->processes[p->parent];

		p->hosts = from->hosts;
		p->proxy = from->proxy;
		p->in_pipe = from->in_pipe;
		p->out_pipe = from->out_pipe;
		if (from->exe)
			set_program(p, from->exe, from->words, from->words_len);
	} else {
		read_program(p);
		if (at)
			p->hosts = all_hosts(v);	/* its parent is gone, and may have been anybody */
	}
	return at;
}

static uint32_t process_of(struct provenance *v, pid_t tid)
{
	struct known_thread *k = &v->threads[(unsigned)tid % ARRAY_LEN(v->threads)];
	uint64_t now = io_now_ms();
	struct status s;
	uint32_t at;

	if (k->tid == tid && now - k->checked_ms < CHECK_MS)
		return k->process;
	if (!read_status(tid, &s) || s.inner <= 1)	/* gone, or ward-init */
		return NOBODY;
	at = find_process(v, s.tgid);
	if (at == NOBODY || v->processes[at].inner != s.inner)
		at = add_process(v, &s);
	*k = (struct known_thread){ .tid = tid, .process = at, .checked_ms = now };
	return at;
}

void provenance_began(struct provenance *v, pid_t pid)
{
	uint32_t at = v ? process_of(v, pid) : NOBODY;

	if (at != NOBODY)
		v->processes[at].stale = true;
}

/* ---- files ---- */

static uint32_t hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return (uint32_t)(h ^ h >> 32);
}

static struct file *find_file(struct provenance *v, const char *path, bool make)
{
	uint32_t at = hash(path) % SLOTS;
	struct file *f;

	for (; v->slots[at]; at = (at + 1) % SLOTS)
		if (strcmp(v->files[v->slots[at] - 1].path, path) == 0)
			return &v->files[v->slots[at] - 1];
	if (!make || path_is_beneath(path, "/dev") || path_is_beneath(path, "/proc"))	/* what goes to /dev/null never comes back */
		return NULL;
	if (v->file_count == FILES_MAX) {
		v->lost++;
		return NULL;
	}
	f = &v->files[v->file_count];
	f->path = strdup(path);
	if (!f->path)
		return NULL;
	for (size_t i = 0; i < v->plan->root_count; i++)
		f->within |= path_is_beneath(path, v->plan->roots[i].path);
	v->slots[at] = ++v->file_count;
	return f;
}

static void add_writer(struct provenance *v, const char *path, uint32_t process, enum observe_act change)
{
	struct file *f = *path ? find_file(v, path, true) : NULL;
	struct writer w = { .process = process, .change = (uint8_t)change, .seen_us = event_now_us() };

	if (!f)
		return;
	f->pending = f->within;
	for (uint8_t i = 0; i < f->writer_count; i++)
		if (f->writers[i].process == process) {
			if (f->writers[i].change != w.change)
				f->writers[i].told = false;
			f->writers[i].change = w.change;
			f->writers[i].seen_us = w.seen_us;
			return;
		}
	if (f->writer_count == WRITERS_MAX) {	/* the first stays, and the last ones do */
		memmove(&f->writers[1], &f->writers[2], sizeof(f->writers[0]) * (WRITERS_MAX - 2));
		f->writer_count--;
	}
	f->writers[f->writer_count++] = w;
}

/* What a process may have read, with what came through its standard input by now. */
static uint64_t hosts_of(const struct provenance *v, const struct process *p, unsigned depth)
{
	uint64_t hosts = p->hosts;

	for (uint32_t i = 0; p->in_pipe && depth && i < v->process_count; i++)
		if (v->processes[i].out_pipe == p->in_pipe)
			hosts |= hosts_of(v, &v->processes[i], depth - 1);
	return hosts;
}

static void read_file(struct provenance *v, const char *path, struct process *p)
{
	const struct file *f = v->host_count ? find_file(v, path, false) : NULL;

	for (uint8_t i = 0; f && i < f->writer_count; i++)
		p->hosts |= hosts_of(v, &v->processes[f->writers[i].process], 4);
}

/* A program begins. What its descriptors 0 to 2 are was often opened by the shell that started it. */
static void begin_program(struct provenance *v, uint32_t at, const struct observation *o, const char *words, size_t len)
{
	struct process *p = &v->processes[at];
	char link[PATH_MAX];

	set_program(p, o->path, words, len);
	p->in_pipe = read_pipe(o->pid, 0);
	p->out_pipe = read_pipe(o->pid, 1);
	p->stale = true;	/* what it really has become is read when it does something */
	if (!p->in_pipe && read_descriptor(o->pid, 0, link))
		read_file(v, link, p);
	for (int fd = 1; fd <= 2; fd++)
		if (read_descriptor(o->pid, fd, link) && find_file(v, link, false))
			add_writer(v, link, at, ACT_WRITE);
	read_file(v, o->path, p);
}

/* What was written under the old name is now to be found under the new one. */
static void rename_file(struct provenance *v, const struct observation *o, uint32_t process)
{
	const struct file *old = *o->from ? find_file(v, o->from, false) : NULL;
	struct writer writers[WRITERS_MAX];
	uint8_t count = old ? old->writer_count : 0;

	if (old)
		memcpy(writers, old->writers, sizeof(writers));
	for (uint8_t i = 0; i < count; i++)
		if (writers[i].process != process)
			add_writer(v, o->path, writers[i].process, (enum observe_act)writers[i].change);
	add_writer(v, o->path, process, o->act);
	if (o->act == ACT_RENAME)
		add_writer(v, o->from, process, ACT_DELETE);
}

/* ---- the network ---- */

/* The bit of a host. */
static uint64_t host_bit(struct provenance *v, const char *host)
{
	for (unsigned i = 0; i < v->host_count; i++)
		if (strcmp(v->hosts[i], host) == 0)
			return UINT64_C(1) << i;
	if (v->host_count == HOSTS_MAX)
		return OTHER_HOSTS;
	v->hosts[v->host_count] = strdup(host);
	if (!v->hosts[v->host_count])
		return OTHER_HOSTS;
	return UINT64_C(1) << v->host_count++;
}

void provenance_name(struct provenance *v, const char *host, const uint8_t *address, size_t n)
{
	struct synthetic s = { 0 };
	uint64_t bit;

	if (!v || !n)
		return;
	memcpy(s.address, address, n < sizeof(s.address) ? n : sizeof(s.address));
	for (size_t i = 0; i < v->name_count; i++)
		if (memcmp(v->names[i].address, s.address, sizeof(s.address)) == 0)
			return;
	bit = host_bit(v, host);
	s.host = (uint8_t)__builtin_ctzll(bit);
	if (v->name_count == v->name_cap) {
		struct synthetic *grown = reallocarray(v->names, v->name_cap + 64, sizeof(*grown));

		if (!grown)
			return;
		v->names = grown;
		v->name_cap += 64;
	}
	v->names[v->name_count++] = s;
	for (size_t i = 0; i < ARRAY_LEN(v->waiting); i++)
		if (v->waiting[i].process < v->process_count && memcmp(v->waiting[i].address, s.address, sizeof(s.address)) == 0)
			v->processes[v->waiting[i].process].hosts |= bit;
}

void provenance_proxied(struct provenance *v, const char *host)
{
	if (!v)
		return;
	v->proxied |= host_bit(v, host);
	for (uint32_t i = 0; i < v->process_count; i++)
		if (v->processes[i].proxy)
			v->processes[i].hosts |= v->proxied;
}

static void connect_to(struct provenance *v, uint32_t process, const struct observation *o)
{
	struct process *p = &v->processes[process];
	struct sockaddr_in6 in6 = { 0 };
	struct sockaddr_in in = { 0 };
	uint8_t address[16] = { 0 };
	char text[INET6_ADDRSTRLEN] = "";
	sa_family_t family;

	memcpy(&family, o->address, sizeof(family));
	memcpy(family == AF_INET ? (void *)&in : (void *)&in6, o->address, family == AF_INET ? sizeof(in) : sizeof(in6));
	if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
		family = AF_INET;
		memcpy(&in.sin_addr, in6.sin6_addr.s6_addr + 12, 4);
		in.sin_port = in6.sin6_port;
	}
	memcpy(address, family == AF_INET ? (void *)&in.sin_addr : (void *)&in6.sin6_addr, family == AF_INET ? 4 : 16);
	if (family == AF_INET ? address[0] == 127 : IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr)) {
		if (ntohs(family == AF_INET ? in.sin_port : in6.sin6_port) == 53)
			return;		/* the resolver tells nothing but addresses */
		p->proxy = true;
		p->hosts |= v->proxied;
		return;
	}
	for (size_t i = 0; i < v->name_count; i++)
		if (memcmp(v->names[i].address, address, sizeof(address)) == 0) {
			p->hosts |= UINT64_C(1) << v->names[i].host;
			return;
		}
	if (family == AF_INET && address[0] == 198 && (address[1] & 0xfe) == 18) {	/* it stands for a name that we are about to hear of */
		struct waiting *w = &v->waiting[v->waiting_at++ % ARRAY_LEN(v->waiting)];

		w->process = process;
		memcpy(w->address, address, sizeof(address));
	} else if (inet_ntop(family, family == AF_INET ? (void *)&in.sin_addr : (void *)&in6.sin6_addr, text, sizeof(text))) {
		p->hosts |= host_bit(v, text);
	}
}

void provenance_saw(struct provenance *v, const struct observation *o, const char *words, size_t words_len)
{
	uint32_t at = process_of(v, o->pid);

	if (at == NOBODY) {
		return;		/* gone by now, or ward-init: it changes nothing of the host's */
	}
	if (v->processes[at].stale && o->act != ACT_EXEC)
		read_program(&v->processes[at]);
	switch (o->act) {
	case ACT_EXEC:
		begin_program(v, at, o, words, words_len);
		break;
	case ACT_OPEN:
		if (o->writes)
			add_writer(v, o->path, at, ACT_WRITE);	/* whether it was there before, nobody knows */
		read_file(v, o->path, &v->processes[at]);
		break;
	case ACT_RENAME:
	case ACT_LINK:
		rename_file(v, o, at);
		break;
	case ACT_CREATE:
	case ACT_WRITE:
	case ACT_DELETE:
	case ACT_MODE:
		add_writer(v, o->path, at, o->act);
		break;
	case ACT_CONNECT:
		connect_to(v, at, o);
		break;
	case ACT_LOOK:
		break;
	}
}

/* What a process wrote to a pipe goes to all that have it as their input; where nobody was seen to, and it is not the output that the parent has itself, the parent collects it. */
static bool spread_one(struct provenance *v, const struct process *from)
{
	struct process *parent = from->parent == NOBODY ? NULL : &v->processes[from->parent];
	bool more = false, found = false;

	for (uint32_t i = 0; i < v->process_count; i++) {
		struct process *to = &v->processes[i];

		if (to->in_pipe != from->out_pipe)
			continue;
		found = true;
		more |= (to->hosts | from->hosts) != to->hosts;
		to->hosts |= from->hosts;
	}
	if (found || !parent || parent->out_pipe == from->out_pipe)
		return more;
	more |= (parent->hosts | from->hosts) != parent->hosts;
	parent->hosts |= from->hosts;
	return more;
}

void provenance_spread(struct provenance *v)
{
	bool more = v->host_count > 0;

	for (unsigned turn = 0; more && turn < 8; turn++) {	/* as many programs in one pipe */
		more = false;
		for (uint32_t i = 0; i < v->process_count; i++)
			if (v->processes[i].out_pipe && v->processes[i].hosts)
				more |= spread_one(v, &v->processes[i]);
	}
}
