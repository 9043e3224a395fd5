// Checks of the C program: each says what is wrong, is counted, and lets the program go on. It may,
// since every function of thalia/c.h takes the NULL that a failed one leaves.
#pragma once

#include "thalia/c.h"

/// A check failed. Printed, counted.
void fail(const char* file, int line, const char* what);
int failures(void);

/// What a call returned, what it should have, and what the text of the error should contain (NULL:
/// anything).
void check_status(const char* file, int line, const char* call, thalia_status status,
                  thalia_status expected, const char* text);

#define CHECK(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, #condition))
#define OK(call) check_status(__FILE__, __LINE__, #call, call, THALIA_OK, NULL)
/// The call fails with this status, and its error says so, in a text that contains `text`.
#define FAILS(call, status, text) check_status(__FILE__, __LINE__, #call, call, status, text)

/// A file in the program's folder; overwritten by the next call.
const char* path_of(const char* name);
/// The length of such a file, -1 if there is none.
long length_of(const char* name);
/// Copies such a file as far as `length`, with the byte at `flipped` inverted unless that is -1.
void copy_file(const char* from, const char* to, long length, long flipped);

/// True where the text is this.
int is_text(thalia_text text, const char* expected);
