/*
 * Names and their synthetic addresses. In: canonical names that the rules allow, each with its port
 * class. Out: one address each, and the way back, which is an array over the whole range; the way
 * forth is a hash table whose hash (SipHash-1-3) is keyed, because the sandbox chooses the names.
 * An address is of the block of its class (port_classes.h), or where that is full, and for names
 * without a class, of the rest. Entries are only added. When the rules change, a name may be of
 * another class: the next question gives it a second address, and the first one goes on to mean it.
 * Memory is reserved for the worst case at once and becomes real page by page. Run by the gateway's
 * parsing process. Fuzzed with fuzz/dns.c.
 */
#include <stdlib.h>
#include <string.h>

#include "rules/name_table.h"
#include "rules/net.h"

/* a power of two; few, so that few pages are touched by few names */
#define BUCKETS 8192
#define WILD_BYTES (3 * 1024 * 1024) /* of text that names under wildcards may fill */
#define LISTED_BYTES (NAME_TABLE_LISTED * (HOSTNAME_MAX + 1))
#define RANGE 0xc6120000u /* 198.18.0.0 */
#define RANGE_ADDRESSES 0x20000u
#define REST_FIRST (RANGE_ADDRESSES / 2)

struct entry {
	uint32_t text;
	uint32_t next;      /* index + 1 in the same bucket */
	uint32_t address;   /* counted from RANGE; the latest */
	uint8_t len, class; /* class: that it was given for */
};

struct name_table {
	uint64_t key[2];
	const struct net_classes *classes;  /* borrowed; NULL: none */
	uint32_t used[NET_CLASSES_MAX + 1]; /* addresses of each block; the last is the rest */
	uint32_t count, wild, listed, text_len, wild_bytes;
	uint32_t buckets[BUCKETS]; /* index + 1 */
	struct entry entries[NAME_TABLE_MAX];
	uint32_t meaning[RANGE_ADDRESSES]; /* index + 1 of the entry */
	char text[WILD_BYTES + LISTED_BYTES];
};

_Static_assert(NAME_TABLE_MAX < RANGE_ADDRESSES - REST_FIRST, "every name fits into the rest");
_Static_assert(NET_CLASSES_MAX *NET_CLASS_ADDRESSES <= REST_FIRST,
	       "the blocks lie before the rest");

static uint64_t turn(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = turn(v[1], 13) ^ v[0];
	v[0] = turn(v[0], 32);
	v[2] += v[3];
	v[3] = turn(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = turn(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = turn(v[1], 17) ^ v[2];
	v[2] = turn(v[2], 32);
}

static uint64_t hash(const struct name_table *n, const char *s, size_t len)
{
	uint64_t v[4] = { n->key[0] ^ 0x736f6d6570736575u, n->key[1] ^ 0x646f72616e646f6du,
			  n->key[0] ^ 0x6c7967656e657261u, n->key[1] ^ 0x7465646279746573u };
	uint64_t last = (uint64_t)len << 56;

	for (size_t at = 0; at <= len; at += 8) {
		uint64_t word = 0;
		size_t rest = len - at < 8 ? len - at : 8;

		memcpy(&word, s + at, rest);
		if (rest < 8)
			word |= last;
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	for (unsigned i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct name_table *name_table_new(const uint8_t seed[16])
{
	struct name_table *n = calloc(1, sizeof(*n));

	if (n)
		memcpy(n->key, seed, sizeof(n->key));
	return n;
}

void name_table_free(struct name_table *n)
{
	free(n);
}

void name_table_use_classes(struct name_table *n, const struct net_classes *classes)
{
	n->classes = classes;
}

const struct net_classes *name_table_classes(const struct name_table *n)
{
	return n->classes;
}

static struct ip address_of(uint32_t offset)
{
	uint32_t a = RANGE + offset;

	return ip_from_4((const uint8_t[]){ (uint8_t)(a >> 24), (uint8_t)(a >> 16),
					    (uint8_t)(a >> 8), (uint8_t)a });
}

/* Counts a new name; false: there is no room for it. */
static bool admit(struct name_table *n, uint32_t bytes, bool listed)
{
	if (listed && n->listed < NAME_TABLE_LISTED) {
		n->listed++;
		return true;
	}
	if (n->wild >= NAME_TABLE_WILD || n->wild_bytes + bytes > WILD_BYTES)
		return false;
	n->wild++;
	n->wild_bytes += bytes;
	return true;
}

/* The next address of a block, 0: it is full. The first of each is left out. */
static uint32_t next_of(struct name_table *n, unsigned class, uint32_t kept)
{
	uint32_t first = class < NET_CLASSES_MAX ? class * NET_CLASS_ADDRESSES : REST_FIRST;
	uint32_t all = class < NET_CLASSES_MAX ? NET_CLASS_ADDRESSES : RANGE_ADDRESSES - REST_FIRST;

	return n->used[class] + 1 + kept < all ? first + ++n->used[class] : 0;
}

/* An address for an entry. again: it has one; then no room is taken that names still to come may
 * need. */
static bool give_address(struct name_table *n, uint32_t index, unsigned class, bool again)
{
	struct entry *entry = &n->entries[index];
	uint32_t address = next_of(
		n, class, again && class == NET_CLASSES_MAX ? NAME_TABLE_MAX - n->count : 0);

	if (!address && !again && class < NET_CLASSES_MAX)
		address = next_of(n, NET_CLASSES_MAX, 0);
	entry->class = (uint8_t) class;
	if (!address)
		return false;
	entry->address = address;
	n->meaning[address] = index + 1;
	return true;
}

bool name_table_give(struct name_table *n, const struct host *host, bool listed, unsigned class,
		     struct ip *ret)
{
	uint32_t *bucket = &n->buckets[hash(n, host->name, host->len) & (BUCKETS - 1)];
	struct entry *new;

	if (host->kind != HOST_NAME)
		return false;
	for (uint32_t at = *bucket; at; at = n->entries[at - 1].next) {
		const struct entry *entry = &n->entries[at - 1];

		if (entry->len == host->len &&
		    memcmp(n->text + entry->text, host->name, host->len) == 0) {
			if (entry->class != class)
				(void)!give_address(n, at - 1, class, true);
			*ret = address_of(entry->address);
			return true;
		}
	}
	if (class > NET_CLASSES_MAX || !admit(n, host->len, listed))
		return false;
	new = &n->entries[n->count];
	*new = (struct entry){ .text = n->text_len, .next = *bucket, .len = host->len };
	memcpy(n->text + n->text_len, host->name, host->len);
	n->text_len += host->len;
	*bucket = ++n->count;
	if (!give_address(n, n->count - 1, class, false))
		return false;
	*ret = address_of(new->address);
	return true;
}

bool name_table_is_synthetic(const struct ip *ip)
{
	return ip->family == 4 && ip->bytes[0] == 198 && (ip->bytes[1] & 0xfe) == 18;
}

bool name_table_find(const struct name_table *n, const struct ip *ip, struct host *ret)
{
	uint32_t a = (uint32_t)ip->bytes[0] << 24 | (uint32_t)ip->bytes[1] << 16 |
		     (uint32_t)ip->bytes[2] << 8 | ip->bytes[3];
	const struct entry *entry;

	if (!name_table_is_synthetic(ip) || !n->meaning[a - RANGE])
		return false;
	entry = &n->entries[n->meaning[a - RANGE] - 1];
	memset(ret, 0, sizeof(*ret));
	ret->kind = HOST_NAME;
	ret->len = entry->len;
	memcpy(ret->name, n->text + entry->text, entry->len);
	return true;
}

uint32_t name_table_count(const struct name_table *n)
{
	return n->count;
}
