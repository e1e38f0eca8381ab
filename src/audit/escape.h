/* Untrusted texts inside other people's formats. Pure functions: whatever the bytes are, what comes
 * out cannot end its own place. */
#ifndef WARD_AUDIT_ESCAPE_H
#define WARD_AUDIT_ESCAPE_H

#include "base/buf.h"

/* Each takes n bytes of anything (NUL too) and appends valid UTF-8: bytes that are not become
 * U+FFFD, characters that act on a terminal or turn text around become escapes of the format, or
 * \uXXXX as text where it has none. */

/* The inside of a JSON string, with its quotes. */
void escape_json(struct buf *out, const char *text, size_t n);
/* A field of CEF's header: | and \ are escaped, no line ends. */
void escape_cef_header(struct buf *out, const char *text, size_t n);
/* A value of CEF's extension: = and \ are escaped, line ends are \n. */
void escape_cef_value(struct buf *out, const char *text, size_t n);
/* A value of RFC 5424's structured data without its quotes: " \ and ] are escaped. */
void escape_sd(struct buf *out, const char *text, size_t n);
/* Text of one line: the message of RFC 5424. */
void escape_line(struct buf *out, const char *text, size_t n);
/* Text or an attribute's value in HTML: & < > " ' are references. */
void escape_html(struct buf *out, const char *text, size_t n);
/* A label's value of Prometheus without its quotes. */
void escape_label(struct buf *out, const char *text, size_t n);

#endif
