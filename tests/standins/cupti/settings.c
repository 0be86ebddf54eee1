/* SPDX-License-Identifier: MIT
 *
 * The rest of CUPTI that a client may call: versions, identities, attributes, and the one
 * subscriber that the real library allows. Subscribers get no callbacks here.
 */
#include <string.h>

#include "cupti_standin.h"

static char the_subscriber;
static bool subscribed;

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version) {
  if (!version)
    return CUPTI_ERROR_INVALID_PARAMETER;
  *version = STANDIN_CUDA_MAJOR == 12 ? 26 : CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t *id) {
  (void)context;
  *id = 1;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t *id) {
  (void)context;
  *id = (uint32_t)*sim_device();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
                                        uint32_t *id) {
  if (!id)
    return CUPTI_ERROR_INVALID_PARAMETER;
  if (!stream && !context) /* as CUPTI 13.0 on an H100 */
    return CUPTI_ERROR_INVALID_STREAM;
  sim_lock();
  const struct CUstream_st *found = sim_stream(stream, per_thread);
  bool known = sim_stream_is(found);
  if (known)
    *id = found->id;
  sim_unlock();
  return known ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_STREAM;
}

CUptiResult CUPTIAPI cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *id) {
  return cuptiGetStreamIdEx(context, stream, 0, id);
}

CUptiResult CUPTIAPI cuptiGetGraphExecId(CUgraphExec executable, uint32_t *id) {
  if (!executable || !id)
    return CUPTI_ERROR_INVALID_PARAMETER;
  *id = (uint32_t)((const struct sim_graph *)(void *)executable)->id;
  return CUPTI_SUCCESS;
}

/* Attributes that a client may set, with the real library's defaults. */
static union {
  size_t size;
  uint8_t flag;
} attributes[] = {
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE] = {.size = 3200000},
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT] = {.size = 250},
    [CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER] = {.flag = STANDIN_CUDA_MAJOR > 12},
    [16] = {0},
};

bool activity_buffers_are_per_thread(void) {
  return attributes[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER].flag;
}

static bool is_attribute(CUpti_ActivityAttribute attribute, const size_t *bytes,
                         const void *value) {
  return bytes && value && (unsigned)attribute < sizeof(attributes) / sizeof(*attributes) &&
         *bytes <= sizeof(*attributes);
}

CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *bytes,
                                               void *value) {
  if (!is_attribute(attribute, bytes, value))
    return CUPTI_ERROR_INVALID_PARAMETER;
  sim_lock();
  memcpy(&attributes[attribute], value, *bytes);
  sim_unlock();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t *bytes,
                                               void *value) {
  if (!is_attribute(attribute, bytes, value))
    return CUPTI_ERROR_INVALID_PARAMETER;
  sim_lock();
  memcpy(value, &attributes[attribute], *bytes);
  sim_unlock();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t ms) {
  (void)ms;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableLatencyTimestamps(uint8_t on) {
  (void)on;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  (void)type;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetLastError(void) {
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **text) {
  *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "stand-in CUPTI error";
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                                    void *user) {
  (void)callback, (void)user;
  if (subscribed)
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  subscribed = true;
  *subscriber = (CUpti_SubscriberHandle)(void *)&the_subscriber;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  if (!subscribed || (char *)subscriber != &the_subscriber)
    return CUPTI_ERROR_INVALID_PARAMETER;
  subscribed = false;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  (void)on, (void)subscriber, (void)domain, (void)id;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle subscriber,
                                       CUpti_CallbackDomain domain) {
  (void)on, (void)subscriber, (void)domain;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiFinalize(void) {
  activity_reset();
  sim_lock();
  sim_activity_set(NULL);
  sim_unlock();
  return CUPTI_SUCCESS;
}
