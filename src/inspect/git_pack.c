/*
 * Reading packs for their commits (git_pack.h). In: the bytes of a pack, from inside, cut anywhere.
 * Out: whether they prove updates to be fast-forwards. Objects are inflated one after the other;
 * commits, whole or as a difference to another commit of the pack, are kept, the rest is thrown
 * away. Runs in front.
 */
#include "inspect/git_pack.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define COMMIT_MAX (256 * 1024) /* bytes of one commit */
#define COMMITS_MAX 65536
#define PARENTS_MAX (4 * COMMITS_MAX)    /* of all commits */
#define KEPT_MAX (8 * 1024 * 1024)       /* bytes of commits, for differences to them */
#define INFLATED_MAX (256 * 1024 * 1024) /* of all objects, and of what differences make */

enum { TYPE_COMMIT = 1, TYPE_OFFSET = 6, TYPE_REFERENCE = 7 };
enum { IN_HEAD, IN_OBJECT, IN_BASE, IN_DATA, IN_OVER };

struct commit {
	uint8_t id[GIT_ID_MAX];
	uint64_t offset;
	uint32_t parents, n_parents; /* in parents: the first, how many */
	size_t content, content_len; /* in kept; len 0: it is not */
	uint32_t visited;
};

struct update {
	uint8_t old[GIT_ID_MAX], new[GIT_ID_MAX];
	bool proven;
};

struct git_pack {
	unsigned id_len;
	unsigned n_updates;
	struct update updates[GIT_UPDATES_MAX];
	/* commits */
	struct commit *commits;
	uint32_t count, cap, checked, turn;
	uint32_t *table, table_size; /* index + 1 by id; a power of two */
	struct buf kept, parents;
	/* where the reading is */
	uint8_t state, type;
	/* something else than a commit has come, and that was acted upon; the end was */
	bool others, looked, ended;
	uint32_t objects; /* left */
	uint64_t offset, began, inflated, size;
	uint8_t head[GIT_ID_MAX + 12];
	unsigned head_len;
	const struct commit *base; /* of a difference; NULL: not to a commit that is known */
	z_stream z;
	struct buf content;
};

struct git_pack *git_pack_new(unsigned id_len)
{
	struct git_pack *p = calloc(1, sizeof(*p));

	if (p && inflateInit(&p->z) != Z_OK) {
		free(p);
		return NULL;
	}
	if (p)
		p->id_len = id_len;
	return p;
}

void git_pack_free(struct git_pack *p)
{
	if (!p)
		return;
	inflateEnd(&p->z);
	free(p->commits);
	free(p->table);
	buf_free(&p->kept);
	buf_free(&p->parents);
	buf_free(&p->content);
	free(p);
}

bool git_pack_want(struct git_pack *p, const uint8_t *old, const uint8_t *new)
{
	struct update *u = &p->updates[p->n_updates];

	if (p->n_updates == GIT_UPDATES_MAX)
		return false;
	memcpy(u->old, old, p->id_len);
	memcpy(u->new, new, p->id_len);
	u->proven = memcmp(old, new, p->id_len) == 0;
	p->n_updates++;
	return true;
}

/* -- commits by id */

static uint32_t slot_of(const struct git_pack *p, const uint8_t *id)
{
	uint64_t hash;

	memcpy(&hash, id, sizeof(hash));
	hash *= 0x9e3779b97f4a7c15;
	return (uint32_t)(hash >> 32) & (p->table_size - 1);
}

static struct commit *find(const struct git_pack *p, const uint8_t *id)
{
	if (!p->table_size)
		return NULL;
	for (uint32_t i = slot_of(p, id); p->table[i]; i = (i + 1) & (p->table_size - 1))
		if (memcmp(p->commits[p->table[i] - 1].id, id, p->id_len) == 0)
			return &p->commits[p->table[i] - 1];
	return NULL;
}

static const struct commit *find_offset(const struct git_pack *p, uint64_t offset)
{
	uint32_t low = 0, high = p->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (p->commits[middle].offset == offset)
			return &p->commits[middle];
		if (p->commits[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void enter(struct git_pack *p, uint32_t index)
{
	uint32_t i = slot_of(p, p->commits[index].id);

	while (p->table[i])
		i = (i + 1) & (p->table_size - 1);
	p->table[i] = index + 1;
}

/* Room for one more. */
static bool grow(struct git_pack *p)
{
	uint32_t cap = p->cap ? p->cap * 2 : 64;
	struct commit *commits;
	uint32_t *table;

	if (p->count < p->cap)
		return true;
	commits = cap > COMMITS_MAX ? NULL : realloc(p->commits, cap * sizeof(*commits));
	if (!commits)
		return false;
	p->commits = commits;
	table = calloc((size_t)cap * 2, sizeof(*table));
	if (!table)
		return false;
	free(p->table);
	p->table = table;
	p->table_size = cap * 2;
	p->cap = cap;
	for (uint32_t i = 0; i < p->count; i++)
		enter(p, i);
	return true;
}

/* -- one commit */

static bool take_hex(const char *s, unsigned id_len, uint8_t *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = 0; i < 2 * id_len; i++) {
		const char *d = s[i] ? strchr(digits, s[i]) : NULL;

		if (!d)
			return false;
		ret[i / 2] = (uint8_t)(ret[i / 2] << 4 | (d - digits));
	}
	return true;
}

/* Lines "tree ID", then "parent ID" each; what follows is of no interest. */
static bool take_parents(struct git_pack *p, struct commit *c, const char *s, size_t n)
{
	size_t hex = 2 * p->id_len;

	c->parents = (uint32_t)(p->parents.len / p->id_len);
	if (n < 6 + hex || memcmp(s, "tree ", 5) != 0 || s[5 + hex] != '\n')
		return false;
	for (s += 6 + hex, n -= 6 + hex; n > 8 + hex - 1 && memcmp(s, "parent ", 7) == 0;
	     s += 8 + hex, n -= 8 + hex) {
		uint8_t id[GIT_ID_MAX] = { 0 };

		if (s[7 + hex] != '\n' || !take_hex(s + 7, p->id_len, id) ||
		    p->parents.len >= (size_t)PARENTS_MAX * p->id_len)
			return false;
		buf_add(&p->parents, id, p->id_len);
		c->n_parents++;
	}
	return !p->parents.failed;
}

static bool name(const struct git_pack *p, const char *content, size_t n, uint8_t *ret)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	char head[32];
	int head_len = snprintf(head, sizeof(head), "commit %zu", n) + 1;
	bool done = md &&
		    EVP_DigestInit_ex(md, p->id_len == 32 ? EVP_sha256() : EVP_sha1(), NULL) == 1 &&
		    EVP_DigestUpdate(md, head, (size_t)head_len) == 1 &&
		    EVP_DigestUpdate(md, content, n) == 1 && EVP_DigestFinal_ex(md, ret, NULL) == 1;

	EVP_MD_CTX_free(md);
	return done;
}

static void add_commit(struct git_pack *p, const char *content, size_t n)
{
	struct commit c = { .offset = p->began };

	if (!name(p, content, n, c.id) || find(p, c.id))
		return;
	if (!grow(p) || !take_parents(p, &c, content, n)) {
		p->state = IN_OVER;
		return;
	}
	if (p->kept.len + n <= KEPT_MAX) {
		c.content = p->kept.len;
		c.content_len = n;
		buf_add(&p->kept, content, n);
	}
	if (p->kept.failed) {
		p->state = IN_OVER;
		return;
	}
	p->commits[p->count] = c;
	enter(p, p->count++);
}

/* -- differences */

static bool take_size(const uint8_t **at, const uint8_t *end, size_t *ret)
{
	unsigned shift = 0;

	*ret = 0;
	do {
		if (*at == end || shift > 28)
			return false;
		*ret |= (size_t)(**at & 0x7f) << shift;
		shift += 7;
	} while (*(*at)++ & 0x80);
	return true;
}

/* The operands of a copy: bytes for each bit that is set. */
static bool take_copy(const uint8_t **at, const uint8_t *end, uint8_t bits, size_t *ret_from,
		      size_t *ret_n)
{
	*ret_from = *ret_n = 0;
	for (unsigned i = 0; i < 7; i++) {
		if (!(bits & 1u << i))
			continue;
		if (*at == end)
			return false;
		*(i < 4 ? ret_from : ret_n) |= (size_t) * (*at)++ << (i < 4 ? 8 * i : 8 * (i - 4));
	}
	*ret_n = *ret_n ? *ret_n : 0x10000;
	return true;
}

static bool apply(const char *base, size_t base_len, const uint8_t *at, const uint8_t *end,
		  struct buf *out)
{
	size_t from_size, to_size;

	if (!take_size(&at, end, &from_size) || !take_size(&at, end, &to_size) ||
	    from_size != base_len || to_size > COMMIT_MAX)
		return false;
	while (at < end) {
		uint8_t op = *at++;
		size_t from = 0, n = op;

		if (op & 0x80) {
			if (!take_copy(&at, end, op, &from, &n) || from > base_len ||
			    n > base_len - from || n > to_size - out->len)
				return false;
			buf_add(out, base + from, n);
			continue;
		}
		if (!op || n > (size_t)(end - at) || n > to_size - out->len)
			return false;
		buf_add(out, at, n);
		at += n;
	}
	return !out->failed && out->len == to_size;
}

/* -- the stream */

static void end_object(struct git_pack *p)
{
	const uint8_t *bytes = (const uint8_t *)buf_text(&p->content);
	auto_buf whole = { 0 };
	bool made;

	if (p->z.total_out != p->size) {
		p->state = IN_OVER;
		return;
	}
	made = p->type != TYPE_COMMIT && p->base &&
	       apply(p->kept.data + p->base->content, p->base->content_len, bytes,
		     bytes + p->content.len, &whole);
	p->inflated += whole.len; /* also of one that failed: it was work */
	if (p->inflated > INFLATED_MAX) {
		p->state = IN_OVER;
		return;
	}
	if (p->type == TYPE_COMMIT)
		add_commit(p, buf_text(&p->content), p->content.len);
	else if (made)
		add_commit(p, buf_text(&whole), whole.len);
	else
		p->others = true;
	p->content.len = 0;
	if (p->state == IN_OVER)
		return;
	p->state = --p->objects ? IN_OBJECT : IN_OVER;
	p->head_len = 0;
	p->began = p->offset;
}

static size_t take_data(struct git_pack *p, const uint8_t *bytes, size_t n)
{
	bool wanted = (p->type == TYPE_COMMIT || p->base) && p->size <= COMMIT_MAX;
	uint8_t block[16384];
	int r;

	p->z.next_in = (Bytef *)(uintptr_t)bytes;
	p->z.avail_in = (unsigned)n;
	do {
		size_t made;

		p->z.next_out = block;
		p->z.avail_out = sizeof(block);
		r = inflate(&p->z, Z_NO_FLUSH);
		made = sizeof(block) - p->z.avail_out;
		p->inflated += made;
		if ((r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) ||
		    p->z.total_out > p->size || p->inflated > INFLATED_MAX) {
			p->state = IN_OVER;
			return n;
		}
		if (wanted)
			buf_add(&p->content, block, made);
	} while (r == Z_OK && (p->z.avail_in || !p->z.avail_out));
	if (p->content.failed || (p->type == TYPE_COMMIT && !wanted)) {
		p->state = IN_OVER;
		return n;
	}
	p->offset += n - p->z.avail_in;
	n -= p->z.avail_in;
	if (r == Z_STREAM_END)
		end_object(p);
	return n;
}

/* The head of an object is in the reading: its type and size, then its base. True: it is whole. */
static bool read_object(struct git_pack *p)
{
	uint8_t last = p->head[p->head_len - 1];
	uint64_t size;
	unsigned i = 1;

	if (last & 0x80) {
		if (p->head_len > 9)
			p->state = IN_OVER;
		return false;
	}
	size = p->head[0] & 0x0f;
	for (; i < p->head_len; i++)
		size |= (uint64_t)(p->head[i] & 0x7f) << (4 + 7 * (i - 1));
	p->size = size;
	p->type = p->head[0] >> 4 & 7;
	p->base = NULL;
	p->head_len = 0;
	p->state = p->type == TYPE_OFFSET || p->type == TYPE_REFERENCE ? IN_BASE : IN_DATA;
	if (p->type == 0 || p->type == 5)
		p->state = IN_OVER;
	return p->state == IN_DATA;
}

static bool read_base(struct git_pack *p)
{
	uint64_t back = 0;

	if (p->type == TYPE_REFERENCE) {
		if (p->head_len < p->id_len)
			return false;
		p->base = find(p, p->head);
	} else {
		if (p->head[p->head_len - 1] & 0x80) {
			if (p->head_len > 8)
				p->state = IN_OVER;
			return false;
		}
		for (unsigned i = 0; i < p->head_len; i++)
			back = (i ? (back + 1) << 7 : 0) | (p->head[i] & 0x7f);
		p->base = back <= p->began ? find_offset(p, p->began - back) : NULL;
	}
	if (p->base && !p->base->content_len)
		p->base = NULL;
	return true;
}

static void begin_data(struct git_pack *p)
{
	p->state = IN_DATA;
	p->content.len = 0;
	if (inflateReset(&p->z) != Z_OK)
		p->state = IN_OVER;
}

static void read_pack(struct git_pack *p)
{
	const uint8_t *h = p->head;
	uint32_t version = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];

	p->objects = (uint32_t)h[8] << 24 | (uint32_t)h[9] << 16 | (uint32_t)h[10] << 8 | h[11];
	p->state = memcmp(h, "PACK", 4) == 0 && (version == 2 || version == 3) && p->objects
			   ? IN_OBJECT
			   : IN_OVER;
	p->head_len = 0;
	p->began = p->offset;
}

void git_pack_take(struct git_pack *p, const uint8_t *bytes, size_t n)
{
	while (n && p->state != IN_OVER) {
		size_t used = 1;

		if (p->state == IN_DATA) {
			used = take_data(p, bytes, n);
		} else {
			p->head[p->head_len++] = *bytes;
			p->offset++;
			if (p->state == IN_HEAD && p->head_len == 12)
				read_pack(p);
			else if (p->state == IN_OBJECT ? read_object(p)
						       : p->state == IN_BASE && read_base(p))
				begin_data(p);
		}
		bytes += used;
		n -= used;
	}
}

/* -- the proof */

static bool is_ancestor(struct git_pack *p, const struct update *u)
{
	uint32_t *waiting = malloc((p->count + 1) * sizeof(*waiting)), left = 0;
	const struct commit *first = find(p, u->new);
	bool found = false;

	if (!waiting)
		return false;
	p->turn++;
	if (first) {
		p->commits[first - p->commits].visited = p->turn;
		waiting[left++] = (uint32_t)(first - p->commits);
	}
	while (left && !found) {
		const struct commit *c = &p->commits[waiting[--left]];

		for (uint32_t i = 0; i < c->n_parents && !found; i++) {
			const uint8_t *id = (const uint8_t *)p->parents.data +
					    (size_t)(c->parents + i) * p->id_len;
			struct commit *parent = find(p, id);

			found = memcmp(id, u->old, p->id_len) == 0;
			if (parent && parent->visited != p->turn) {
				parent->visited = p->turn;
				waiting[left++] = (uint32_t)(parent - p->commits);
			}
		}
	}
	free(waiting);
	return found;
}

/* Commits come before everything else in the packs of git: one look behind them is enough. Where
 * they do not, each look has twice as many as the one before. */
bool git_pack_proves(struct git_pack *p, bool last)
{
	bool all = true, due = last || (p->state == IN_OVER && !p->ended) ||
			       (p->others && !p->looked) || p->count >= 2 * p->checked + 16;

	p->looked |= p->others;
	p->ended |= p->state == IN_OVER;
	if (due)
		p->checked = p->count;
	for (unsigned i = 0; i < p->n_updates; i++) {
		struct update *u = &p->updates[i];

		if (!u->proven && due)
			u->proven = is_ancestor(p, u);
		all &= u->proven;
	}
	return all;
}

size_t git_pack_size(const struct git_pack *p)
{
	return sizeof(*p) + p->cap * sizeof(*p->commits) + p->table_size * sizeof(*p->table) +
	       p->kept.cap + p->parents.cap + p->content.cap;
}

unsigned git_pack_unproven(const struct git_pack *p)
{
	unsigned i = 0;

	while (i < p->n_updates && p->updates[i].proven)
		i++;
	return i;
}
