/*
 * The authority of one sandbox (ca.h). In: the names of inspect rules, then one host after another.
 * Out: certificates. One key signs, one other key is shown for all hosts: making keys is what
 * costs. Runs in front, which is confined; the keys leave its memory never, not even as PEM, and
 * end with it.
 */
#include "transport/ca.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "transport/tls_init.h"

#define LEAVES 128 /* places of the cache; a newer name takes an older one's place */
#define DAY 86400L
#define CA_DAYS 7
#define EARLIER (-3600L) /* clocks of programs inside may be set by hand */

struct leaf {
	char name[HOST_TEXT];
	X509 *certificate;
	time_t until;
};

struct ca {
	EVP_PKEY *key, *leaf_key;
	X509 *certificate;
	struct leaf leaves[LEAVES];
};

/* -- parts of certificates */

static bool set_serial(X509 *x)
{
	uint8_t bytes[16];
	BIGNUM *number = NULL;
	bool fine;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] = (uint8_t)((bytes[0] & 0x7f) | 1); /* positive, and of one length */
	number = BN_bin2bn(bytes, sizeof(bytes), NULL);
	fine = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
	BN_free(number);
	return fine;
}

static bool set_names(X509 *x, const char *subject, const X509 *issuer)
{
	X509_NAME *name = X509_get_subject_name(x);

	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const uint8_t *)"ward", -1, -1,
					  0) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)subject, -1,
					  -1, 0) &&
	       X509_set_issuer_name(x, issuer ? X509_get_subject_name(issuer) : name);
}

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *extension;
	bool fine;

	X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	fine = extension && X509_add_ext(x, extension, -1);
	X509_EXTENSION_free(extension);
	return fine;
}

/* One "this and all below it" of the constraints. */
static bool add_subtree(STACK_OF(GENERAL_SUBTREE) * *list, int type, const void *bytes, int n)
{
	GENERAL_SUBTREE *subtree = GENERAL_SUBTREE_new();
	ASN1_STRING *value = type == GEN_IPADD ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();

	if (!*list)
		*list = sk_GENERAL_SUBTREE_new_null();
	if (!subtree || !value || !*list || !ASN1_STRING_set(value, bytes, n) ||
	    !sk_GENERAL_SUBTREE_push(*list, subtree)) {
		GENERAL_SUBTREE_free(subtree);
		ASN1_STRING_free(value);
		return false;
	}
	GENERAL_NAME_set0_value(subtree->base, type, value);
	return true;
}

/* Only these names, and no address at all. */
static bool add_constraints(X509 *x, const char *const *names, size_t n)
{
	static const uint8_t all[32];
	NAME_CONSTRAINTS *c = NAME_CONSTRAINTS_new();
	bool fine = c && add_subtree(&c->excludedSubtrees, GEN_IPADD, all, 8) &&
		    add_subtree(&c->excludedSubtrees, GEN_IPADD, all, 32);

	for (size_t i = 0; fine && i < n; i++)
		fine = add_subtree(&c->permittedSubtrees, GEN_DNS, names[i], (int)strlen(names[i]));
	fine = fine && X509_add1_ext_i2d(x, NID_name_constraints, c, 1, X509V3_ADD_DEFAULT) == 1;
	NAME_CONSTRAINTS_free(c);
	return fine;
}

/* A certificate without its extensions; NULL: no memory. */
static X509 *begin_certificate(const char *subject, X509 *issuer, EVP_PKEY *key, long days)
{
	X509 *x = X509_new();

	if (x && X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
	    set_names(x, subject, issuer) && X509_gmtime_adj(X509_getm_notBefore(x), EARLIER) &&
	    X509_gmtime_adj(X509_getm_notAfter(x), days * DAY) && X509_set_pubkey(x, key))
		return x;
	X509_free(x);
	return NULL;
}

static X509 *make_authority(EVP_PKEY *key, const char *const *names, size_t n)
{
	uint8_t random[6];
	char subject[64] = "ward sandbox ";
	X509 *x;

	if (RAND_bytes(random, sizeof(random)) != 1)
		return NULL;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(subject + strlen(subject), 3, "%02x", random[i]);
	x = begin_certificate(subject, NULL, key, CA_DAYS);
	if (x && add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_extension(x, x, NID_key_usage, "critical,keyCertSign") &&
	    add_extension(x, x, NID_subject_key_identifier, "hash") &&
	    add_constraints(x, names, n) && X509_sign(x, key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}

static X509 *make_leaf(const struct ca *c, const char *name)
{
	char alternative[HOST_TEXT + 8];
	X509 *x = begin_certificate(strlen(name) <= 64 ? name : "inspected by ward", c->certificate,
				    c->leaf_key, 1);

	snprintf(alternative, sizeof(alternative), "DNS:%s", name);
	if (x && add_extension(x, c->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_extension(x, c->certificate, NID_key_usage, "critical,digitalSignature") &&
	    add_extension(x, c->certificate, NID_ext_key_usage, "serverAuth") &&
	    add_extension(x, c->certificate, NID_authority_key_identifier, "keyid") &&
	    add_extension(x, c->certificate, NID_subject_alt_name, alternative) &&
	    X509_sign(x, c->key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}

/* -- the authority */

int ca_new(const char *const *names, size_t n, struct ca **ret, struct ward_err *e)
{
	struct ca *c;

	if (n > CA_NAMES_MAX) {
		ward_fail(e, E2BIG, "more than %d different names in rules with mode inspect",
			  CA_NAMES_MAX);
		return ward_remedy(e, "combine some into one rule for *.suffix");
	}
	tls_init();
	c = calloc(1, sizeof(*c));
	if (!c)
		return ward_fail(e, ENOMEM, "out of memory");
	c->key = EVP_EC_gen("P-256");
	c->leaf_key = EVP_EC_gen("P-256");
	c->certificate = c->key && c->leaf_key ? make_authority(c->key, names, n) : NULL;
	ERR_clear_error();
	if (!c->certificate) {
		ca_free(c);
		return ward_fail(e, EIO, "cannot make the sandbox's certificate authority");
	}
	*ret = c;
	return 0;
}

void ca_free(struct ca *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < LEAVES; i++)
		X509_free(c->leaves[i].certificate);
	X509_free(c->certificate);
	EVP_PKEY_free(c->leaf_key);
	EVP_PKEY_free(c->key);
	free(c);
}

X509 *ca_certificate(const struct ca *c)
{
	return c->certificate;
}

uint32_t ca_hash(const struct ca *c)
{
	return (uint32_t)X509_subject_name_hash(c->certificate);
}

bool ca_pem(const struct ca *c, struct buf *out)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *bytes = NULL;
	long n = bio && PEM_write_bio_X509(bio, c->certificate) ? BIO_get_mem_data(bio, &bytes) : 0;

	if (n > 0)
		buf_add(out, bytes, (size_t)n);
	BIO_free(bio);
	return n > 0 && !out->failed;
}

static X509 *leaf_for(struct ca *c, const struct host *host)
{
	uint32_t hash = 2166136261u;
	time_t now = time(NULL);
	struct leaf *leaf;

	for (unsigned i = 0; i < host->len; i++)
		hash = (hash ^ (uint8_t)host->name[i]) * 16777619u;
	leaf = &c->leaves[(hash ^ hash >> 16) % LEAVES];
	if (leaf->certificate && strcmp(leaf->name, host->name) == 0 && now < leaf->until)
		return leaf->certificate;
	X509_free(leaf->certificate);
	leaf->certificate = make_leaf(c, host->name);
	leaf->until = now + DAY / 2; /* a connection that began with it has half a day */
	snprintf(leaf->name, sizeof(leaf->name), "%s", host->name);
	return leaf->certificate;
}

bool ca_show(struct ca *c, SSL *ssl, const struct host *host)
{
	X509 *leaf = host->kind == HOST_NAME && host->len ? leaf_for(c, host) : NULL;
	bool fine = leaf && SSL_use_certificate(ssl, leaf) == 1 &&
		    SSL_use_PrivateKey(ssl, c->leaf_key) == 1;

	ERR_clear_error();
	return fine;
}
