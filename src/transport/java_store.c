/*
 * A Java key store (java_store.h). In: certificates. Out: bytes that `-Djavax.net.ssl.trustStore`
 * takes: a header, an entry for each certificate, a digest over all of it. Runs in front before it
 * is confined.
 */
#include "transport/java_store.h"

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <string.h>

static void put16(struct buf *out, size_t value)
{
	const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

	buf_add(out, bytes, sizeof(bytes));
}

static void put32(struct buf *out, size_t value)
{
	put16(out, value >> 16);
	put16(out, value);
}

static void put_text(struct buf *out, const char *text)
{
	put16(out, strlen(text));
	buf_puts(out, text);
}

static void put_certificate(struct buf *out, const char *alias, const unsigned char *der, size_t n)
{
	put32(out, 2); /* a trusted certificate */
	put_text(out, alias);
	put32(out, 0); /* when it was made: never mind */
	put32(out, 0);
	put_text(out, "X.509");
	put32(out, n);
	buf_add(out, der, n);
}

static bool put_digest(struct buf *out, size_t from)
{
	static const char password[] = JAVA_STORE_PASSWORD;
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char digest[20];
	unsigned n = 0;
	bool fine = md && EVP_DigestInit_ex(md, EVP_sha1(), NULL) == 1;

	for (size_t i = 0; fine && i < sizeof(password) - 1; i++) {
		const char wide[] = { '\0', password[i] };

		fine = EVP_DigestUpdate(md, wide, sizeof(wide)) == 1;
	}
	fine = fine && EVP_DigestUpdate(md, "Mighty Aphrodite", 16) == 1 &&
	       EVP_DigestUpdate(md, out->data + from, out->len - from) == 1 &&
	       EVP_DigestFinal_ex(md, digest, &n) == 1;
	EVP_MD_CTX_free(md);
	if (fine)
		buf_add(out, digest, n);
	return fine;
}

bool java_store_write(const struct tls_roots *roots, const struct ca *ca, struct buf *out)
{
	size_t from = out->len;
	unsigned char *der = NULL;
	int n = i2d_X509(ca_certificate(ca), &der);

	if (n <= 0)
		return false;
	put32(out, 0xfeedfeed);
	put32(out, 2);
	put32(out, tls_roots_count(roots) + 1);
	put_certificate(out, "ward", der, (size_t)n);
	OPENSSL_free(der);
	for (unsigned i = 0; i < tls_roots_count(roots); i++) {
		const unsigned char *root;
		char alias[16];
		size_t root_n;

		root = tls_roots_get(roots, i, &root_n);
		snprintf(alias, sizeof(alias), "root%u", i);
		put_certificate(out, alias, root, root_n);
	}
	return !out->failed && put_digest(out, from) && !out->failed;
}
