/*
 * Whether a host has signed a session. In: its key, a signature and the session's id, all of which
 * a program inside sent; the key is already known to be one of the user's known_hosts. Out: yes or
 * no. Ed25519, ECDSA on the three NIST curves, and RSA with SHA-2; a SHA-1 signature counts as
 * none. Runs in the serving process, which has no rights; OpenSSL does the arithmetic.
 */
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <string.h>

#include "ssh/ssh.h"

#define RSA_BITS_MIN 1024
#define RSA_BYTES_MAX 2052

static const struct curve {
	const char *name, *group, *digest;
	size_t point; /* its bytes, uncompressed */
} curves[] = { { "nistp256", "prime256v1", "SHA256", 65 },
	       { "nistp384", "secp384r1", "SHA384", 97 },
	       { "nistp521", "secp521r1", "SHA512", 133 } };

static const struct curve *find_curve(struct ssh_span name)
{
	for (size_t i = 0; i < ARRAY_LEN(curves); i++)
		if (ssh_span_is(name, curves[i].name))
			return &curves[i];
	return NULL;
}

static EVP_PKEY *make_key(const char *type, OSSL_PARAM_BLD *parts)
{
	OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(parts);
	EVP_PKEY_CTX *ctx = params ? EVP_PKEY_CTX_new_from_name(NULL, type, NULL) : NULL;
	EVP_PKEY *key = NULL;

	if (!ctx || EVP_PKEY_fromdata_init(ctx) <= 0 ||
	    EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) <= 0)
		key = NULL;
	EVP_PKEY_CTX_free(ctx);
	OSSL_PARAM_free(params);
	return key;
}

static EVP_PKEY *curve_key(const struct curve *c, struct ssh_span point)
{
	OSSL_PARAM_BLD *parts = c && point.len == c->point ? OSSL_PARAM_BLD_new() : NULL;
	EVP_PKEY *key = NULL;

	if (parts &&
	    OSSL_PARAM_BLD_push_utf8_string(parts, OSSL_PKEY_PARAM_GROUP_NAME, c->group, 0) &&
	    OSSL_PARAM_BLD_push_octet_string(parts, OSSL_PKEY_PARAM_PUB_KEY, point.at, point.len))
		key = make_key("EC", parts);
	OSSL_PARAM_BLD_free(parts);
	return key;
}

static EVP_PKEY *rsa_key(struct ssh_span e, struct ssh_span n)
{
	bool fits = e.len <= 9 && n.len <= RSA_BYTES_MAX;
	OSSL_PARAM_BLD *parts = fits ? OSSL_PARAM_BLD_new() : NULL;
	BIGNUM *exponent = fits ? BN_bin2bn(e.at, (int)e.len, NULL) : NULL,
	       *modulus = fits ? BN_bin2bn(n.at, (int)n.len, NULL) : NULL;
	EVP_PKEY *key = NULL;

	if (parts && exponent && modulus && BN_num_bits(modulus) >= RSA_BITS_MIN &&
	    OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_E, exponent) &&
	    OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_N, modulus))
		key = make_key("RSA", parts);
	BN_free(exponent);
	BN_free(modulus);
	OSSL_PARAM_BLD_free(parts);
	return key;
}

static bool check(EVP_PKEY *key, const char *digest, const uint8_t *signature, size_t n,
		  struct ssh_span bytes)
{
	EVP_MD_CTX *ctx = key ? EVP_MD_CTX_new() : NULL;
	bool fine = ctx && EVP_DigestVerifyInit_ex(ctx, NULL, digest, NULL, NULL, key, NULL) > 0 &&
		    EVP_DigestVerify(ctx, signature, n, bytes.at, bytes.len) == 1;

	EVP_MD_CTX_free(ctx);
	return fine;
}

/* r and s as DER, which OpenSSL wants. */
static bool check_curve(EVP_PKEY *key, const struct curve *c, const struct ssh_parts *signature,
			struct ssh_span bytes)
{
	ECDSA_SIG *sig = key && signature->first.len <= 80 && signature->second.len <= 80
				 ? ECDSA_SIG_new()
				 : NULL;
	BIGNUM *r = sig ? BN_bin2bn(signature->first.at, (int)signature->first.len, NULL) : NULL,
	       *s = sig ? BN_bin2bn(signature->second.at, (int)signature->second.len, NULL) : NULL;
	unsigned char *der = NULL;
	bool fine = false;
	int n;

	if (r && s && ECDSA_SIG_set0(sig, r, s)) {
		n = i2d_ECDSA_SIG(sig, &der);
		fine = n > 0 && check(key, c->digest, der, (size_t)n, bytes);
	} else {
		BN_free(r);
		BN_free(s);
	}
	OPENSSL_free(der);
	ECDSA_SIG_free(sig);
	return fine;
}

bool agent_verify(struct ssh_span key_blob, struct ssh_span signature_blob, struct ssh_span bytes)
{
	struct ssh_parts key, signature;
	const struct curve *c;
	EVP_PKEY *made = NULL;
	bool fine = false;

	if (!ssh_host_key_read(key_blob, &key) || !ssh_signature_read(signature_blob, &signature))
		return false;
	if (ssh_span_is(key.name, "ssh-ed25519") && ssh_span_equal(key.name, signature.name)) {
		made = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key.first.at,
						   key.first.len);
		fine = check(made, NULL, signature.first.at, signature.first.len, bytes);
	} else if (ssh_span_is(key.name, "ssh-rsa")) {
		const char *digest = ssh_span_is(signature.name, "rsa-sha2-256")   ? "SHA256"
				     : ssh_span_is(signature.name, "rsa-sha2-512") ? "SHA512"
										   : NULL;

		made = digest ? rsa_key(key.first, key.second) : NULL;
		fine = check(made, digest, signature.first.at, signature.first.len, bytes);
	} else if (ssh_span_equal(key.name, signature.name)) {
		c = find_curve(key.first);
		made = curve_key(c, key.second);
		fine = check_curve(made, c, &signature, bytes);
	}
	EVP_PKEY_free(made);
	return fine;
}
