/* front's side of a recording (tape.h): what is inspected is sent to the process that has the file.
 * Each function is fine with a NULL exchange: nothing is recorded. */
#ifndef WARD_TAPE_RECORD_H
#define WARD_TAPE_RECORD_H

#include "gateway/front.h"
#include "rules/tape.h"

/* One exchange in the making. */
struct record {
	struct front *front;
	uint32_t number; /* 0: it was not answered yet, nothing is recorded */
	bool sent_all;   /* the request is complete */
	struct buf ask;  /* until it is answered */
	struct sha256 sent;
	uint64_t sent_bytes;
};

/* Starts the process that writes, with the file of GATE_FD_TAPE. */
must_check int record_start(struct front *f, struct ward_err *e);
/* No more comes; the process ends. */
void record_stop(struct front *f);

/* It cannot be written any more: what is under way ends here. */
void record_cut(struct front *f);

/* A request that passes, in the form that is forwarded. False: it cannot be recorded, and must not
 * pass. *ret is NULL where nothing is recorded. */
must_check bool record_begin(struct front *f, const struct want *want, bool tls, unsigned version,
			     const struct http_request *r, struct http_text path,
			     struct record **ret);
/* Bytes of its body; it is complete. */
void record_sent(struct record *r, const void *bytes, size_t n);
void record_sent_all(struct record *r);
/* The final response's head, bytes of its body. */
void record_answer(struct record *r, uint16_t status, const struct http_fields *fields);
void record_data(struct record *r, const void *bytes, size_t n);
/* Ends it, and frees it. trailers may be NULL. whole: nothing is missing. */
void record_end(struct record **r, const struct http_fields *trailers, bool whole);

/* The process. */
int record_main(void);

#endif
