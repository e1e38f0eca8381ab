/* Shared by the files of libward. */
#ifndef WARD_API_API_H
#define WARD_API_API_H

#include "api/request.h"
#include "ward/ward.h"

struct ward_spec {
	char *program;		/* NULL: it is looked for */
	char *texts[REQUEST_TEXTS];
	struct strv options;	/* field, value, origin, "+" or "" */
	struct strv argv;
	bool widen;
};

/* Hands an error of ours to the caller, who may not want it; returns -e->code. */
int api_fail(struct ward_error *ret_e, const struct ward_err *e);

/* The request that the spec stands for; its texts are borrowed. The caller frees it with request_clear(). */
must_check int spec_request_of(const struct ward_spec *s, uint32_t flags, struct request *ret_request,
			       struct ward_err *e);

#endif
