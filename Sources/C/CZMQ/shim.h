#pragma once
#include <zmq.h>

// Macros of more than one operator don't import.
static const int czmq_ETERM = ETERM;

// A draft option of 4.3 that every build of the library knows; the header hides its number.
static const int czmq_ZAP_ENFORCE_DOMAIN = 93;
