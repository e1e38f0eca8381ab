/*
 * What front tells the supervisor about what it let pass: names, connections, their ends. Many
 * records in one packet, because there may be thousands a second. Denials go another way (struct
 * gate_event): they are fewer, and the report lists them.
 */
#ifndef WARD_RULES_FLOW_REPORT_H
#define WARD_RULES_FLOW_REPORT_H

#include "rules/decide.h"

#define FLOW_REPORT_PACKET 16384 /* bytes of one packet */
/* room for a host and a request, as front describes them (EXCHANGE_WHAT) */
#define FLOW_REPORT_TEXT (HOST_TEXT + 400)

enum flow_report_kind {
	/* a name was asked for and given; address: that stands for it inside, number: 1 where only
	 * this is new */
	FLOW_REPORT_NAME = 1,
	FLOW_REPORT_OPENED, /* a connection is open */
	FLOW_REPORT_CLOSED, /* it has ended */
	FLOW_REPORT_LOST,   /* there was no room to tell so many: number */
	/* a request to a language model is over: number, millionths; host: the model; bytes:
	 * tokens */
	FLOW_REPORT_SPENT,
	FLOW_REPORT_BUDGET, /* a budget is nearly spent: number of bytes_out */
	/* a rule of the firewall matched: number; host: its message; bytes_in: severity; inward:
	 * the request was refused */
	FLOW_REPORT_WAF,
	/* a request has gone: number, the status of its answer, 0: there was none; host: "HOST
	 * METHOD /path KEY=ENTRY"; bytes: of the bodies */
	FLOW_REPORT_HTTP,
	/* what looks like a secret is in a request: host: "KIND WHERE HOST"; how: what was done,
	 * SCAN_* of the policy; number: how many */
	FLOW_REPORT_SECRET,
	FLOW_REPORT_KINDS
};

struct flow_report {
	uint8_t kind;      /* enum flow_report_kind */
	uint8_t how, mode; /* enum want_how, enum rule_mode */
	bool inward;
	uint8_t family; /* of address: 4, 6; 0: none */
	uint16_t host_len;
	uint16_t port;
	int32_t rule; /* index, -1: none */
	uint64_t flow, generation, bytes_in, bytes_out;
	/* CLOSED: milliseconds that it was open; LOST: how many; SPENT, BUDGET: an amount */
	uint64_t number;
	uint8_t address[16];
	/* text, host_len bytes; only so many are sent. Of a request more than HOST_TEXT - 1 */
	char host[FLOW_REPORT_TEXT];
};

/* Appends a record to n bytes of at most cap; returns the new length, n where it does not fit.
 * Pure. */
size_t flow_report_put(uint8_t *bytes, size_t n, size_t cap, const struct flow_report *t);
/* The length of the record that begins at bytes; 0: none does. Pure. */
size_t flow_report_length(const uint8_t *bytes, size_t n);
/* Reads the record at bytes; returns its length, 0 where it is none. host is NUL-terminated and
 * printable. Pure. */
size_t flow_report_get(const uint8_t *bytes, size_t n, struct flow_report *ret);

#endif
