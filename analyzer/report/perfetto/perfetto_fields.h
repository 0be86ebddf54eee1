/* SPDX-License-Identifier: MIT
 *
 * The few fields of a Perfetto trace that are written here, by their numbers in
 * protos/perfetto/trace/ of github.com/google/perfetto; the tests read them with the classes of the
 * `perfetto` package.
 */
#pragma once

enum { TRACE_PACKET = 1 };

enum { /* TracePacket */
       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE = 10,
       PACKET_TRACK_EVENT = 11,
       PACKET_INTERNED = 12,
       PACKET_SEQUENCE_FLAGS = 13,
       PACKET_TRACK = 60,
};
enum { SEQUENCE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };

enum { /* TrackDescriptor */
       TRACK_UUID = 1,
       TRACK_NAME = 2,
       TRACK_PROCESS = 3,
       TRACK_PARENT = 5,
       TRACK_COUNTER = 8,
       TRACK_CHILD_ORDERING = 11,
       TRACK_SIBLING_RANK = 12,
       TRACK_DESCRIPTION = 14,
       TRACK_PROCESS_ORDERING = 19,
};
enum { CHILD_ORDERING_EXPLICIT = 3, PROCESS_ORDERING_EXPLICIT = 1 };

enum { PROCESS_PID = 1, PROCESS_SORT_INDEX = 3, PROCESS_NAME = 6 };
enum { COUNTER_UNIT = 3, COUNTER_UNIT_NAME = 6 };
enum { UNIT_SIZE_BYTES = 3 };

enum { /* TrackEvent */
       EVENT_CATEGORY = 3,
       EVENT_ANNOTATION = 4,
       EVENT_TYPE = 9,
       EVENT_NAME = 10,
       EVENT_TRACK = 11,
       EVENT_CATEGORY_TEXT = 22,
       EVENT_NAME_TEXT = 23,
       EVENT_COUNTER = 30,
       EVENT_COUNTER_DOUBLE = 44,
       EVENT_FLOW = 47,
       EVENT_FLOW_END = 48,
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_COUNTER = 4 };

enum { /* DebugAnnotation */
       ANNOTATION_NAME_IID = 1,
       ANNOTATION_INT = 4,
       ANNOTATION_DOUBLE = 5,
       ANNOTATION_TEXT = 6,
       ANNOTATION_TEXT_IID = 17,
};

enum { INTERNED_CATEGORY = 1, INTERNED_NAME = 2, INTERNED_ANNOTATION = 3, INTERNED_TEXT = 29 };
enum { INTERN_IID = 1, INTERN_TEXT = 2 };
