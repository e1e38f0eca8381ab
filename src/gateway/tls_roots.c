/*
 * The host's trust store (tls_roots.h). In: PEM text of a file that the operator trusts. Out: certificates by their subject's
 * name, when a chain needs them. Of each one only the name is read at first. Runs where tls_up.c runs.
 */
#include "gateway/tls_roots.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#define ROOTS_MAX 4096

struct root {
	unsigned char *der;	/* owned by OpenSSL */
	size_t n;
	unsigned long hash;	/* of its subject, as OpenSSL compares names */
};

struct tls_roots {
	X509_LOOKUP_METHOD *method;
	unsigned count;
	struct root items[];
};

/* The contents of a sequence, or what lies behind an element; false: it is not one. */
static int enter(const unsigned char **at, const unsigned char *end)
{
	long n;
	int tag, class;

	return (ASN1_get_object(at, &n, &tag, &class, end - *at) & 0xa0) == 0x20 && tag == V_ASN1_SEQUENCE;
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
static int subject_hash(const unsigned char *der, size_t n, unsigned long *ret)
{
	const unsigned char *at = der, *end = der + n;
	X509_NAME *name;
	int fine = enter(&at, end);

	if (fine)
		fine = enter(&at, end);
	if (fine && at < end && *at == 0xa0)
		fine = skip(&at, end);
	for (int i = 0; i < 4 && fine; i++)
		fine = at < end && skip(&at, end);
	name = fine && at < end ? d2i_X509_NAME(NULL, &at, end - at) : NULL;
	if (!name)
		return 0;
	*ret = X509_NAME_hash_ex(name, NULL, NULL, &fine);
	X509_NAME_free(name);
	return fine;
}

static void read_all(struct tls_roots *r, BIO *bio)
{
	while (r->count < ROOTS_MAX) {
		struct root *root = &r->items[r->count];
		char *name = NULL, *header = NULL;
		unsigned char *der = NULL;
		long n = 0;

		if (!PEM_read_bio(bio, &name, &header, &der, &n)) {
			if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
				break;
			ERR_clear_error();
			continue;
		}
		*root = (struct root){ der, (size_t)n, 0 };
		if ((strcmp(name, PEM_STRING_X509) == 0 || strcmp(name, PEM_STRING_X509_OLD) == 0) && n > 0 &&
		    subject_hash(der, root->n, &root->hash))
			r->count++;
		else
			OPENSSL_free(der);
		OPENSSL_free(name);
		OPENSSL_free(header);
	}
	ERR_clear_error();
}

static int get_by_subject(X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name, X509_OBJECT *ret)
{
	const struct tls_roots *r = X509_LOOKUP_get_method_data(lookup);
	unsigned long hash = type == X509_LU_X509 ? X509_NAME_hash_ex(name, NULL, NULL, NULL) : 0;
	int found = 0;

	for (unsigned i = 0; i < r->count && type == X509_LU_X509; i++) {
		const unsigned char *der = r->items[i].der;
		X509 *x = r->items[i].hash == hash ? d2i_X509(NULL, &der, (long)r->items[i].n) : NULL;

		if (x && X509_NAME_cmp(X509_get_subject_name(x), name) == 0 &&
		    X509_STORE_add_cert(X509_LOOKUP_get_store(lookup), x) && !found && X509_OBJECT_set1_X509(ret, x)) {
			found = 1;
			X509_free(x);	/* the store keeps it; who asked counts for himself */
		}
		X509_free(x);
	}
	ERR_clear_error();
	return found;
}

struct tls_roots *tls_roots_new(const char *pem, size_t n)
{
	struct tls_roots *r = calloc(1, sizeof(*r) + ROOTS_MAX * sizeof(r->items[0]));	/* what is not used is never touched */
	BIO *bio = r ? BIO_new_mem_buf(pem, (int)n) : NULL;

	if (bio) {
		read_all(r, bio);
		BIO_free(bio);
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
	for (unsigned i = 0; i < r->count; i++)
		OPENSSL_free(r->items[i].der);
	X509_LOOKUP_meth_free(r->method);
	free(r);
}

unsigned tls_roots_count(const struct tls_roots *r)
{
	return r->count;
}

const unsigned char *tls_roots_get(const struct tls_roots *r, unsigned i, size_t *ret_n)
{
	*ret_n = r->items[i].n;
	return r->items[i].der;
}

int tls_roots_attach(struct tls_roots *r, X509_STORE *store)
{
	X509_LOOKUP *lookup = X509_STORE_add_lookup(store, r->method);

	return lookup && X509_LOOKUP_set_method_data(lookup, r);
}
