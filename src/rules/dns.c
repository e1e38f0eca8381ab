/*
 * DNS messages. In: the bytes of one query. Out: its one question, or the error code to answer; and
 * the answer to it. A name is read label by label in place; compression is only legal behind the
 * question, where names are skipped, never followed, so there is no loop to fall into. An answer
 * repeats the question byte for byte and refers to its name. Pure functions, no allocation; run by
 * the gateway's parsing process. Fuzzed (fuzz/dns.c).
 */
#include <errno.h>
#include <string.h>

#include "rules/dns.h"

#define HEADER 12
/* a name keeps its address, but may get another one by `ward net` */
#define TTL 5
#define TTL_NEGATIVE 1 /* `ward net allow` is to work at once */
#define EDNS_SIZE 1232

enum { FLAG_QR = 0x8000, FLAG_OPCODE = 0x7800, FLAG_RD = 0x0100, FLAG_RA = 0x0080 };

struct reader {
	const uint8_t *bytes;
	size_t n, at;
	bool bad;
};

static unsigned get16(struct reader *r)
{
	unsigned value;

	if (r->n - r->at < 2) {
		r->bad = true;
		r->at = r->n;
		return 0;
	}
	value = (unsigned)(r->bytes[r->at] << 8 | r->bytes[r->at + 1]);
	r->at += 2;
	return value;
}

static void skip(struct reader *r, size_t n)
{
	if (r->n - r->at < n) {
		r->bad = true;
		r->at = r->n;
	} else {
		r->at += n;
	}
}

/* Takes one label into the dotted text; a byte that text cannot hold makes the name no host
 * name. */
static void add_label(const uint8_t *label, size_t n, char text[256], size_t *len, bool *plain)
{
	if (*len)
		text[(*len)++] = '.';
	for (size_t i = 0; i < n; i++) {
		*plain &= label[i] != '.' && label[i] != '\0';
		text[(*len)++] = (char)label[i];
	}
}

/* The name of the question: labels only. Its wire form is at most 255 bytes, so its text fits. */
static void read_name(struct reader *r, struct dns_query *q)
{
	size_t start = r->at, len = 0;
	char text[256];
	bool plain = true;

	while (r->at < r->n && r->bytes[r->at]) {
		size_t n = r->bytes[r->at];

		if (n > 63 || r->n - r->at <= n || r->at + n + 2 - start > 255) {
			r->bad = true;
			return;
		}
		add_label(r->bytes + r->at + 1, n, text, &len, &plain);
		r->at += n + 1;
	}
	skip(r, 1);
	q->named = !r->bad && plain && len && text[len - 1] != '.' &&
		   host_read(text, len, &q->host) == HOST_FINE;
}

/* A name that is of no interest: labels up to the root or to a pointer. */
static void skip_name(struct reader *r)
{
	while (r->at < r->n && r->bytes[r->at]) {
		uint8_t n = r->bytes[r->at];

		if (n >= 0xc0) {
			skip(r, 2);
			return;
		}
		r->bad |= n > 63;
		if (r->bad)
			return;
		skip(r, (size_t)n + 1);
	}
	skip(r, 1);
}

/* The additional section: OPT once at most; others are skipped. */
static void read_additional(struct reader *r, unsigned count, struct dns_query *q)
{
	for (; count && !r->bad; count--) {
		bool root = r->at < r->n && !r->bytes[r->at];
		unsigned type, class, high, low, length;

		skip_name(r);
		type = get16(r);
		class = get16(r);
		high = get16(r);
		low = get16(r);
		length = get16(r);
		skip(r, length);
		(void)low;
		if (r->bad || type != DNS_OPT)
			continue;
		r->bad |= q->edns || !root;
		q->edns = true;
		q->udp_size = (uint16_t)(class < 512 ? 512 : class);
		if ((high & 0xff) != 0)
			q->rcode = DNS_BADVERS;
	}
}

static void read_body(struct reader *r, const unsigned counts[4], struct dns_query *q)
{
	size_t start = r->at;

	if (counts[0] != 1 || counts[1] || counts[2]) {
		r->bad = true;
		return;
	}
	read_name(r, q);
	q->type = (uint16_t)get16(r);
	q->class = (uint16_t)get16(r);
	if (r->bad)
		return;
	q->question_len = (uint16_t)(r->at - start);
	read_additional(r, counts[3], q);
	r->bad |= r->at != r->n;
	if (!r->bad && q->rcode == DNS_NOERROR && q->class != 1)
		q->rcode = DNS_REFUSED;
}

bool dns_read(const uint8_t *bytes, size_t n, struct dns_query *ret)
{
	struct reader r = { .bytes = bytes, .n = n };
	unsigned flags, counts[4];

	memset(ret, 0, sizeof(*ret));
	ret->udp_size = 512;
	if (n < HEADER)
		return false;
	ret->id = (uint16_t)get16(&r);
	flags = get16(&r);
	for (unsigned i = 0; i < 4; i++)
		counts[i] = get16(&r);
	if (flags & FLAG_QR)
		return false;
	ret->recursion = flags & FLAG_RD;
	if (flags & FLAG_OPCODE) {
		ret->rcode = DNS_NOTIMP;
		return true;
	}
	if (n > DNS_QUERY_MAX)
		r.bad = true;
	else
		read_body(&r, counts, ret);
	if (r.bad) {
		ret->rcode = DNS_FORMERR;
		ret->question_len = 0;
		ret->named = ret->edns = false;
	}
	return true;
}

struct writer {
	uint8_t *out;
	size_t cap, at;
};

static void put_bytes(struct writer *w, const void *bytes, size_t n)
{
	if (w->cap - w->at < n) {
		/* does not happen with DNS_ANSWER_MAX; then nothing is sent */
		w->at = w->cap = 0;
		return;
	}
	memcpy(w->out + w->at, bytes, n);
	w->at += n;
}

static void put16(struct writer *w, unsigned value)
{
	put_bytes(w, (const uint8_t[]){ (uint8_t)(value >> 8), (uint8_t)value }, 2);
}

static void put32(struct writer *w, uint32_t value)
{
	put16(w, value >> 16);
	put16(w, value & 0xffff);
}

static void put_record(struct writer *w, unsigned name, unsigned type, uint32_t ttl, size_t length)
{
	if (name)
		put16(w, name);
	else
		put_bytes(w, "", 1); /* the root */
	put16(w, type);
	put16(w, 1);
	put32(w, ttl);
	put16(w, (unsigned)length);
}

static void put_name(struct writer *w, const struct host *name)
{
	size_t start = 0;

	for (size_t i = 0; i <= name->len; i++) {
		if (i < name->len && name->name[i] != '.')
			continue;
		put_bytes(w, (const uint8_t[]){ (uint8_t)(i - start) }, 1);
		put_bytes(w, name->name + start, i - start);
		start = i + 1;
	}
	put_bytes(w, "", 1);
}

size_t dns_write(const uint8_t *bytes, const struct dns_query *q, uint16_t rcode,
		 const struct ip *ip, const struct host *name, uint8_t *out, size_t cap)
{
	struct writer w = { .out = out, .cap = cap };
	bool found = rcode == DNS_NOERROR && (ip || name);
	bool negative =
		q->question_len && !found && (rcode == DNS_NOERROR || rcode == DNS_NXDOMAIN);

	put16(&w, q->id);
	put16(&w, FLAG_QR | FLAG_RA | (q->recursion ? FLAG_RD : 0u) | (rcode & 15u));
	put16(&w, q->question_len ? 1 : 0);
	put16(&w, found ? 1 : 0);
	put16(&w, negative ? 1 : 0);
	put16(&w, q->edns ? 1 : 0);
	put_bytes(&w, bytes + HEADER, q->question_len);
	if (found && ip) {
		put_record(&w, 0xc000 | HEADER, DNS_A, TTL, 4);
		put_bytes(&w, ip->bytes, 4);
	} else if (found) {
		put_record(&w, 0xc000 | HEADER, DNS_PTR, TTL, (size_t)name->len + 2);
		put_name(&w, name);
	}
	if (negative) { /* SOA of the root: it says how long negative answers may be cached */
		put_record(&w, 0, DNS_SOA, TTL_NEGATIVE, 22);
		put16(&w, 0);
		put32(&w, 1);
		for (unsigned i = 0; i < 4; i++)
			put32(&w, TTL_NEGATIVE);
	}
	if (q->edns) {
		put_bytes(&w, "", 1);
		put16(&w, DNS_OPT);
		put16(&w, EDNS_SIZE);
		put32(&w, (uint32_t)(rcode >> 4) << 24);
		put16(&w, 0);
	}
	return w.at;
}

int dns_frame(const uint8_t *bytes, size_t n)
{
	int length;

	if (n < 2)
		return 0;
	length = bytes[0] << 8 | bytes[1];
	if (length < HEADER || length > DNS_QUERY_MAX)
		return -EMSGSIZE;
	return n - 2 < (size_t)length ? 0 : length;
}
