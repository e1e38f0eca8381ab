/*
 * The host's trust store (tls_roots.h). In: PEM text of a file that the operator trusts. Out:
 * certificates by their subject's name, when a chain needs them. At first they are only found in
 * the text and decoded, then their names are read; nothing else of a certificate before it is
 * wanted. Runs where tls_up.c runs.
 */
#include "transport/tls_roots.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROOTS_MAX 4096

struct root {
	uint32_t at, n;   /* in der */
	uint32_t subject; /* where its name begins */
	/* of its subject, as OpenSSL compares names; 0 until it is needed */
	unsigned long hash;
};

struct tls_roots {
	X509_LOOKUP_METHOD *method;
	unsigned char *der; /* all of them, one after another; owned */
	unsigned count;
	bool hashed;
	struct root items[];
};

/* The contents of a sequence, or what lies behind an element; false: it is not one. */
static int enter(const unsigned char **at, const unsigned char *end)
{
	long n;
	int tag, class;

	return (ASN1_get_object(at, &n, &tag, &class, end - *at) & 0xa0) == 0x20 &&
	       tag == V_ASN1_SEQUENCE;
}

static int skip(const unsigned char **at, const unsigned char *end)
{
	long n;
	int tag, class;

	if (ASN1_get_object(at, &n, &tag, &class, end - *at) & 0x80)
		return 0;
	*at += n;
	return 1;
}

/* Certificate { tbs { [0] version, serial, algorithm, issuer, validity, subject ... */
static bool find_subject(const unsigned char *der, size_t n, uint32_t *ret)
{
	const unsigned char *at = der, *end = der + n;
	int fine = enter(&at, end);

	if (fine)
		fine = enter(&at, end);
	if (fine && at < end && *at == 0xa0)
		fine = skip(&at, end);
	for (int i = 0; i < 4 && fine; i++)
		fine = at < end && skip(&at, end);
	*ret = (uint32_t)(at - der);
	return fine && at < end && *at == 0x30;
}

/* -- PEM: OpenSSL's reader takes as long as everything else that a gateway does before it begins */

static int sextet(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+'             ? 62
	       : c == '/'             ? 63
				      : -1;
}

/* From at to the first dash; returns the bytes that it was, 0 where it is no base64. */
static size_t decode(const char **at, const char *end, unsigned char *out)
{
	uint32_t bits = 0;
	unsigned have = 0, padding = 0;
	size_t n = 0;

	for (; *at < end && **at != '-'; (*at)++) {
		int value = sextet(**at);

		if (value >= 0 && !padding) {
			bits = bits << 6 | (uint32_t)value;
			have += 6;
			if (have >= 8)
				out[n++] = (unsigned char)(bits >> (have -= 8));
		} else if (**at == '=') {
			padding++;
		} else if (**at != '\n' && **at != '\r' && **at != ' ' && **at != '\t') {
			return 0;
		}
	}
	return padding <= 2 ? n : 0;
}

/* Where the next certificate's base64 begins; NULL: there is none. */
static const char *next_pem(const char *at, const char *end)
{
	static const char *const heads[] = { "-----BEGIN " PEM_STRING_X509 "-----",
					     "-----BEGIN " PEM_STRING_X509_OLD "-----" };

	while ((at = memmem(at, (size_t)(end - at), "-----BEGIN ", 11))) {
		for (size_t i = 0; i < 2; i++) {
			size_t n = strlen(heads[i]);

			if ((size_t)(end - at) > n && memcmp(at, heads[i], n) == 0)
				return at + n;
		}
		at += 11;
	}
	return NULL;
}

static void read_all(struct tls_roots *r, const char *pem, size_t n)
{
	const char *at = pem, *end = pem + n;
	uint32_t used = 0;

	while (r->count < ROOTS_MAX && (at = next_pem(at, end))) {
		struct root *root = &r->items[r->count];

		*root = (struct root){ .at = used, .n = (uint32_t)decode(&at, end, r->der + used) };
		if (!root->n || !find_subject(r->der + used, root->n, &root->subject))
			continue;
		used += root->n;
		r->count++;
	}
}

void tls_roots_index(struct tls_roots *r)
{
	for (unsigned i = 0; i < r->count && !r->hashed; i++) {
		struct root *root = &r->items[i];
		const unsigned char *at = r->der + root->at + root->subject;
		X509_NAME *name = d2i_X509_NAME(NULL, &at, (long)(root->n - root->subject));

		if (name)
			root->hash = X509_NAME_hash_ex(name, NULL, NULL, NULL);
		X509_NAME_free(name);
	}
	r->hashed = true;
	ERR_clear_error();
}

static int get_by_subject(X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name,
			  X509_OBJECT *ret)
{
	struct tls_roots *r = X509_LOOKUP_get_method_data(lookup);
	unsigned long hash = type == X509_LU_X509 ? X509_NAME_hash_ex(name, NULL, NULL, NULL) : 0;
	int found = 0;

	tls_roots_index(r);
	for (unsigned i = 0; i < r->count && type == X509_LU_X509; i++) {
		const unsigned char *der = r->der + r->items[i].at;
		X509 *x =
			r->items[i].hash == hash ? d2i_X509(NULL, &der, (long)r->items[i].n) : NULL;

		if (x && X509_NAME_cmp(X509_get_subject_name(x), name) == 0 &&
		    X509_STORE_add_cert(X509_LOOKUP_get_store(lookup), x) && !found &&
		    X509_OBJECT_set1_X509(ret, x)) {
			found = 1;
			/* the store keeps it; the caller has a reference of its own */
			X509_free(x);
		}
		X509_free(x);
	}
	ERR_clear_error();
	return found;
}

struct tls_roots *tls_roots_new(const char *pem, size_t n)
{
	/* what is not used is never touched */
	struct tls_roots *r = calloc(1, sizeof(*r) + ROOTS_MAX * sizeof(r->items[0]));

	if (r)
		r->der = malloc(n / 4 * 3 + 3);
	if (r && r->der) {
		read_all(r, pem, n);
		r->method = r->count ? X509_LOOKUP_meth_new("trust store") : NULL;
	}
	if (!r || !r->method || !X509_LOOKUP_meth_set_get_by_subject(r->method, get_by_subject)) {
		tls_roots_free(r);
		return NULL;
	}
	return r;
}

void tls_roots_free(struct tls_roots *r)
{
	if (!r)
		return;
	X509_LOOKUP_meth_free(r->method);
	free(r->der);
	free(r);
}

unsigned tls_roots_count(const struct tls_roots *r)
{
	return r->count;
}

const unsigned char *tls_roots_get(const struct tls_roots *r, unsigned i, size_t *ret_n)
{
	*ret_n = r->items[i].n;
	return r->der + r->items[i].at;
}

int tls_roots_attach(struct tls_roots *r, X509_STORE *store)
{
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, r->method);

	return lookup && X509_LOOKUP_set_method_data(lookup, r);
}
