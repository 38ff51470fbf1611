"""Exception hierarchy, catalogue of error codes and renderer of the Domain API (spec 07).

PlatformError                code (catalogue entry), parameters, target, details; `info` carries diagnostics
├── BadRequest 400           malformed input, unknown names
├── Unauthorized 401         no, bad or expired token
├── Forbidden 403            scope, permission, licence feature
├── NotFound 404             no such entity, or not visible to this caller
├── MethodNotAllowed 405     with the Allow list
├── Gone 410                 a delta link whose changes are no longer kept
├── NotAcceptable 406 · LengthRequired 411 · PayloadTooLarge 413 · UrlTooLong 414 · UnsupportedMediaType 415
├── PreconditionFailed 412   a condition of the request
│   └── VersionConflict      optimistic locking
├── FailedDependency 424     a part of a batch whose group or prerequisite failed
├── TooManyRequests 429      retry_after_seconds
├── Refused 500              valid request, refused by data, model or a rule; the same request fails the same way
├── NotSupported 501         valid OData that this service does not implement
└── Unavailable 503          retry_after_seconds

OAuth endpoints have their own error format (identity.oauth.responses); all other failures are rendered here.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from django.utils.translation import gettext, gettext_noop

from foundation.catalogue import Catalogue
from foundation.messages import TranslatableMessage as Message
from foundation.messages import filled, placeholders, reason_of, translated, written


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One entry of the catalogue. `number` and `type` are public and never change meaning (spec 07)."""

    number: int
    type: str
    message_format: str
    status: int


#: Every code by its type. Printed by `manage.py error_codes`.
error_codes: Catalogue[ErrorCode] = Catalogue("error code")


def error_codes_by_number() -> list[ErrorCode]:
    """Every code, ordered by number."""
    return sorted(error_codes, key=attrgetter("number"))


def add_error_code(number: int, type_: str, message_format: str, status: int) -> ErrorCode:
    """Register a code. Raises ValueError for a number or type that is taken."""
    if any(code.number == number for code in error_codes):
        raise ValueError(f"the error code {number} is registered twice")
    code = ErrorCode(number, type_, message_format, status)
    error_codes.add(type_, code)
    return code


_add = add_error_code

_ = gettext_noop

# Fixed by the specification.
NO_LICENCE = _add(8, "NoLicence", _("Every licensed session is in use. Try again in {0} seconds."), 503)
VALIDATION_FAILED = _add(2029, "ValidationFailed", _("The changes cannot be saved: {0}"), 500)
DUPLICATE_VALUE = _add(2129, "DuplicateValue", _("Another record of {0} already has {1} = {2} (index {3})."), 500)

# 1–99: the service itself.
INTERNAL_ERROR = _add(
    1, "InternalError", _("An unexpected error occurred. Quote the correlation id {0} to support."), 500
)
DATABASE_BUSY = _add(2, "DatabaseBusy", _("The database is busy. Try again in {0} seconds."), 503)
STORAGE_FULL = _add(3, "StorageFull", _("The server could not store the change: {0}"), 503)
SERVER_STOPPING = _add(7, "ServerStopping", _("The server stops or restarts. Try again in {0} seconds."), 503)
DATABASE_UNREACHABLE = _add(
    5, "DatabaseUnreachable", _("The database cannot be reached. Try again in {0} seconds."), 503
)
REDIS_UNREACHABLE = _add(11, "RedisUnreachable", _("Redis cannot be reached. Try again in {0} seconds."), 503)
MODEL_CHANGED = _add(
    6, "ModelChanged", _("The definition of an entity has changed in the meantime. Repeat the request."), 503
)
INSTANCE_SUSPENDED = _add(
    9, "InstanceSuspended", _("This instance is suspended by its operator. Try again in {0} seconds."), 503
)
INSTANCE_UNAVAILABLE = _add(
    10, "InstanceUnavailable", _("This instance cannot be started at the moment. Try again in {0} seconds."), 503
)
NOT_SUPPORTED = _add(4, "NotSupported", _("This service does not support {0}."), 501)

# 100–199: authentication and authorization.
TOKEN_MISSING = _add(
    100, "TokenMissing", _("The request carries no access token. Send Authorization: Bearer <token>."), 401
)
TOKEN_INVALID = _add(101, "TokenInvalid", _("The access token is not valid: {0}."), 401)
TOKEN_EXPIRED = _add(
    102, "TokenExpired", _("The access token has expired. Get a new one from the token endpoint."), 401
)
CREDENTIALS_AMBIGUOUS = _add(103, "CredentialsAmbiguous", _("The request carries more than one credential: {0}."), 400)
LEGACY_CREDENTIALS = _add(
    104,
    "LegacyCredentials",
    _(
        "{0} is not offered here. Get an access token from /id/connect/token and send it as Authorization: Bearer, or "
        "send a reference token as Bearer or in X-Api-Key."
    ),
    401,
)
SCOPE_MISSING = _add(110, "ScopeMissing", _("The access token lacks the scope '{0}' that this operation needs."), 403)
PERMISSION_DENIED = _add(111, "PermissionDenied", _("You may not {0} {1}."), 403)
FEATURE_NOT_LICENSED = _add(112, "FeatureNotLicensed", _("The licence of this instance does not include {0}."), 403)
USER_NOT_INTERNAL = _add(113, "UserNotInternal", _("Only internal users may call this service."), 403)
USER_REQUIRED = _add(114, "UserRequired", _("This address serves people; the token belongs to a service."), 403)
APPLICATION_DISABLED = _add(115, "ApplicationDisabled", _("An administrator has disabled the application {0}."), 403)
ADMINISTRATORS_ONLY = _add(
    116,
    "AdministratorsOnly",
    _("You may not {0} {1}: it decides who may do what, which administrators alone change."),
    403,
)
QUEUE_FULL = _add(
    119, "QueueFull", _("{0} of your requests wait for this server already. Try again in {1} seconds."), 429
)
TOO_MANY_LOGINS = _add(
    118, "TooManyLogins", _("Too many logins wait for this server at the moment. Try again in {0} seconds."), 429
)
ACCESS_DENIED = _add(121, "AccessDenied", _("The request is refused: {0}"), 403)
EXPORTS_LIMITED = _add(
    122, "ExportsLimited", _("You have exported as much as is allowed in a minute. Try again in {0} seconds."), 429
)
RATE_LIMITED = _add(120, "RateLimited", _("More than {0} requests a minute. Try again in {1} seconds."), 429)

# 200–299: the request's form.
BAD_URL = _add(200, "BadUrl", _("The address cannot be read at position {0}: {1}"), 400)
BAD_QUERY_OPTION = _add(201, "BadQueryOption", _("The query option {0} cannot be read: {1}"), 400)
UNKNOWN_PROPERTY = _add(203, "UnknownProperty", _("{1} has no property '{0}'.{2}"), 400)
UNKNOWN_SET = _add(204, "UnknownEntitySet", _("There is no entity set '{0}'.{1}"), 400)
UNKNOWN_REPOSITORY = _add(205, "UnknownRepository", _("There is no repository '{0}'.{1}"), 400)
UNKNOWN_OPERATION = _add(206, "UnknownOperation", _("There is no property or operation '{0}' on {1}.{2}"), 400)
UNKNOWN_PARAMETER = _add(207, "UnknownParameter", _("The operation {0} has no parameter '{1}'.{2}"), 400)
MISSING_PARAMETER = _add(208, "MissingParameter", _("The operation {0} needs the parameter '{1}'."), 400)
INVALID_LITERAL = _add(209, "InvalidLiteral", _("'{0}' is not a valid {1} for {2}."), 400)
INVALID_JSON = _add(210, "InvalidJson", _("The body is not valid JSON: {0}"), 400)
INVALID_BODY = _add(211, "InvalidBody", _("The body cannot be used: {0}"), 400)
INVALID_HEADER = _add(212, "InvalidHeader", _("The header {0} cannot be used: {1}"), 400)
INVALID_KEY = _add(213, "InvalidKey", _("'{0}' is not a valid key of {1}."), 400)
INVALID_TRANSACTION_ID = _add(214, "InvalidTransactionId", _("Invalid TransactionId {0}"), 400)
INVALID_REFERENCE = _add(215, "InvalidReference", _("{0} refers to '{1}', which is not a {2}."), 400)
TYPE_MISMATCH = _add(216, "TypeMismatch", _("The expression at position {0} does not fit: {1}"), 400)
INVALID_SKIPTOKEN = _add(
    217, "InvalidSkipToken", _("The $skiptoken was not issued by this service for this request."), 400
)
READ_ONLY_PROPERTY = _add(218, "ReadOnlyProperty", _("{1}.{0} is read-only."), 400)
RENAMED_SET = _add(219, "RenamedEntitySet", _("{0} is now called {1}; former names are not accepted here."), 400)
METHOD_NOT_ALLOWED = _add(220, "MethodNotAllowed", _("{0} is not allowed here; allowed: {1}."), 405)
NOT_ACCEPTABLE = _add(221, "NotAcceptable", _("None of the requested media types can be served: {0}."), 406)
LENGTH_REQUIRED = _add(222, "LengthRequired", _("The request needs a Content-Length."), 411)
NUL_CHARACTER = _add(
    226, "NulCharacter", _("The text for {0} contains the character U+0000, which cannot be stored."), 400
)
PAYLOAD_TOO_LARGE = _add(223, "PayloadTooLarge", _("The request is larger than {0} bytes."), 413)
UNSUPPORTED_MEDIA_TYPE = _add(224, "UnsupportedMediaType", _("The body must be {0}, not {1}."), 415)
URL_TOO_LONG = _add(
    225,
    "UrlTooLong",
    _("The URL is longer than {0} bytes. Send what stands behind its question mark as text/plain to POST {1}/$query."),
    414,
)
BODY_TOO_SLOW = _add(
    227, "RequestTimeout", _("The body of the request came too slowly: fewer than {0} bytes a second."), 408
)
BATCH_TOO_LARGE = _add(
    228, "BatchTooLarge", _("The batch has used up its {0}. Send this request in another batch."), 413
)
DRY_RUN_TOO_LONG = _add(234, "DryRunTooLong", _("A dry run takes at most {0} seconds. Try a part of it."), 413)
TOO_MANY_VALUES = _add(
    237,
    "TooManyValues",
    _("JSON has at most {0} brackets, braces and commas here. Send it in several requests, or to Import."),
    413,
)
TOO_MANY_OBJECTS = _add(
    238,
    "TooManyObjects",
    _("An import has at most {0} objects. Import the rest by further requests."),
    413,
)
HEADER_TOO_LARGE = _add(239, "HeaderTooLarge", _("The header {0} is larger than {1} bytes."), 431)
TOO_LARGE_WITHOUT_LOGIN = _add(229, "TooLargeWithoutLogin", _("Without a login a request has at most {0} bytes."), 413)
RESOURCE_NOT_FOUND = _add(230, "ResourceNotFound", _("There is nothing at {0}."), 404)
ENTITY_NOT_FOUND = _add(231, "EntityNotFound", _("There is no {0} with the key {1}."), 404)
DELTA_EXPIRED = _add(
    232, "DeltaTokenExpired", _("The changes since this $deltatoken are no longer kept. Read the set anew."), 410
)
INVALID_DELTATOKEN = _add(
    233, "InvalidDeltaToken", _("The $deltatoken was not issued by this service for this request."), 400
)
PRECONDITION_FAILED = _add(240, "PreconditionFailed", _("{0} has been changed since you read it."), 412)
VERSION_CONFLICT = _add(
    241, "VersionConflict", _("{0} has been changed by someone else: version {1} was expected, {2} is stored."), 412
)
DELETED_MEANWHILE = _add(242, "DeletedMeanwhile", _("{0} has been deleted by someone else."), 412)
MADE_MEANWHILE = _add(
    243, "MadeMeanwhile", _("{0} with {1} was not there when it was looked for; someone else has made it since."), 412
)
IDEMPOTENCY_KEY_REUSED = _add(
    244,
    "IdempotencyKeyReused",
    _(
        "The idempotency key belongs to another request. Use a new key for each request; a repeated one has the same URL and body."
    ),
    422,
)
REQUEST_IN_PROGRESS = _add(
    245,
    "RequestInProgress",
    _("A request with this idempotency key is still in progress. Try again in {0} seconds."),
    409,
)
REPEATABILITY_EXPIRED = _add(
    246,
    "RepeatabilityExpired",
    _(
        "Repeatability-First-Sent must be within the last {0} hours, for which answers are kept. Check whether the request was carried out."
    ),
    412,
)
IDEMPOTENT_ANSWER_TOO_LARGE = _add(
    247,
    "IdempotentAnswerTooLarge",
    _(
        "With an idempotency key an answer has at most {0} bytes; nothing was changed. Ask for less, for example with Prefer: return=minimal."
    ),
    413,
)
TOO_MANY_IDEMPOTENCY_KEYS = _add(
    248,
    "TooManyIdempotencyKeys",
    _(
        "Answers are kept for at most {0} idempotency keys of one caller, with {1} MB in all. Try again later, or without a key."
    ),
    429,
)
ISOLATION_NOT_SUPPORTED = _add(
    235, "IsolationNotSupported", _("This service does not offer the isolation {0}; nothing was done."), 412
)
IDEMPOTENT_ANSWER_WITHHELD = _add(
    236,
    "IdempotentAnswerWithheld",
    _(
        "A request with this idempotency key was answered before, but your rights have changed since, so its answer is not shown again. Check whether the request was carried out; a new request needs a new key."
    ),
    403,
)
QUERY_TOO_LONG = _add(
    250,
    "QueryTooLong",
    _("The query takes longer than {0} seconds. Narrow it, for example by a filter on an indexed property."),
    400,
)
ANSWER_TOO_LARGE = _add(
    251,
    "AnswerTooLarge",
    _("The answer would have more than {0}. Ask for less in $expand or $select, or for fewer rows."),
    413,
)
STORED_TOO_LARGE = _add(253, "StoredTooLarge", _("What is stored at {0} is larger than {1} bytes."), 413)
QUERY_TOO_LARGE = _add(252, "QueryTooLarge", _("The query is too large: {0}"), 400)
DEPENDENCY_FAILED = _add(249, "DependencyFailed", _("The request was not carried out: {0}"), 424)
INVALID_VALUE = _add(254, "InvalidValue", _("{0} cannot be used: {1}"), 400)

UNKNOWN_NAMESPACE = _add(255, "UnknownNamespace", _("There is no namespace '{0}'.{1}"), 400)
TABLE_STREAMS_BUSY = _add(
    256, "TableStreamsBusy", _("{0} long answers of the Table API are being sent. Try again in {1} seconds."), 503
)

INVALID_CURSOR = _add(
    257,
    "InvalidCursor",
    _("'{0}' is no position of the change stream. Use the cursor of an event, or 'beginning'."),
    400,
)
CURSOR_EXPIRED = _add(
    258,
    "CursorExpired",
    _("The changes since this cursor are no longer kept. Read the sets anew, then go on from now."),
    410,
)
TOO_MANY_SUBSCRIBERS = _add(
    259, "TooManySubscribers", _("{0} subscribers listen to changes here already. Try again in {1} seconds."), 503
)

# 300–399: Domain transactions.
TRANSACTION_LIMIT = _add(300, "TransactionLimit", _("This session already has {0} open transactions."), 500)
PENDING_LIMIT = _add(301, "PendingLimit", _("A transaction holds at most {0} changed entities."), 500)
CHANGES_NOT_TRACKED = _add(302, "ChangesNotTracked", _("Begin the transaction with trackChanges to use {0}."), 500)
TRANSACTION_REQUIRED = _add(303, "TransactionRequired", _("{0} works only inside a transaction."), 400)
TOO_MANY_WAITING = _add(
    304, "TooManyWaiting", _("{0} clients wait for changes here already. Try again, or use GetChanges."), 503
)

# 2000–2999: refused by the data or the model.
REQUIRED_MISSING = _add(2030, "RequiredAttributeMissing", _("{0} needs values for: {1}."), 500)
VALUE_TOO_LONG = _add(2031, "ValueTooLong", _("{0} holds at most {1} characters; the value has {2}."), 500)
VALUE_OUT_OF_RANGE = _add(2032, "ValueOutOfRange", _("{1} is out of range for {0}."), 500)
REFERENCE_IN_USE = _add(2033, "ReferenceInUse", _("{0} cannot be deleted: {1} refers to it."), 500)
DATE_ORDER = _add(2034, "DateOrder", _("{0} must not be after {1}."), 500)
COMPANY_MISMATCH = _add(2035, "CompanyMismatch", _("{0} and {1} belong to different companies."), 500)
UNIT_CATEGORY = _add(2036, "UnitCategoryMismatch", _("The unit {0} is not of the measurement category of {1}."), 500)
NEGATIVE_QUANTITY = _add(2037, "NegativeQuantity", _("{0} must not be negative."), 500)
CURRENCY_MISMATCH = _add(2038, "CurrencyMismatch", _("{0} is in {1}; the value given is in {2}."), 500)
UNIT_MISMATCH = _add(2039, "UnitMismatch", _("{0} is in {1}; the value given is in {2}."), 500)
REFERENCE_NOT_FOUND = _add(2040, "ReferencedEntityNotFound", _("{0} refers to {1}({2}), which does not exist."), 500)
FIND_FAILED = _add(2041, "FindFailed", _("{0}: {1} entities of {2} match{4}; expected {3}."), 500)
DOCUMENT_LOCKED = _add(2050, "DocumentLocked", _("{0} is {1} and cannot be changed."), 500)
STATE_TRANSITION = _add(2051, "StateTransitionNotAllowed", _("{0} cannot go from {1} to {2}."), 500)
DOCUMENT_VOID = _add(2052, "DocumentVoid", _("{0} is void and cannot be changed."), 500)
VOID_REASON_REQUIRED = _add(2053, "VoidReasonRequired", _("A reason is needed to void {0}."), 500)
USER_STATUS_INVALID = _add(2054, "UserStatusInvalid", _("The user status {0} does not fit the state {1} of {2}."), 500)
USER_STATUS_EXIT = _add(
    2055, "ExitUserStatusRequired", _("{0} must reach the user status {1} before it leaves the state {2}."), 500
)
HIERARCHY_LOOP = _add(2056, "HierarchyLoop", _("{0} cannot be its own ancestor."), 500)
NO_PRODUCT_GROUP = _add(
    2057,
    "NoProductGroup",
    _("{0} needs a ProductGroup, and there is no active product group to take as the default. Create one first."),
    500,
)
DOCUMENT_TYPE_MISMATCH = _add(
    2058,
    "DocumentTypeMismatch",
    _("The document type {0} is for {1}; a document of {2} needs one whose EntityName is {2}."),
    500,
)
LOGIN_USED = _add(
    2059,
    "LoginUsed",
    _(
        "The login {0} belongs or belonged to another user or application, and is never given to a second one; choose another."
    ),
    500,
)
ADJUSTED_NOT_RELEASED = _add(
    2060, "AdjustedDocumentNotReleased", _("{0} is {1}. Only released documents are adjusted."), 500
)
ADJUSTMENT_OF_ADJUSTMENT = _add(
    2061, "AdjustmentOfAdjustment", _("{0} is itself an adjustment and cannot be adjusted."), 500
)
ADJUSTMENT_PENDING = _add(
    2062, "AdjustmentPending", _("{0} already has an adjustment that is neither released nor void."), 500
)
NOTHING_TO_ADJUST = _add(
    2063,
    "NothingToAdjust",
    _("The transaction has no changed quantities or unit prices of a released document to adjust."),
    500,
)
ADJUSTMENT_LINE = _add(
    2064,
    "AdjustmentLineUnmatched",
    _("Line {0} of {1} must fit exactly one line of {2} by number, product and unit."),
    500,
)
ADJUSTMENT_APPLIED = _add(
    2065, "AdjustmentApplied", _("{0} is applied and cannot be made void. Adjust the same document again."), 500
)
ADJUSTMENT_KIND = _add(2066, "AdjustmentKindMismatch", _("{0} cannot adjust {1}, which is of another kind."), 500)

# 3000–3999: rules, scripts, webhooks.
RULE_FAILED = _add(3000, "RuleFailed", _("{0}"), 500)
RULE_BROKEN = _add(3001, "RuleBroken", _("The rule {0} can no longer be evaluated: {1}"), 500)
RULE_LOOP = _add(3002, "RuleLoop", _("Rules keep triggering each other: {0}"), 500)
RULE_INVALID = _add(3003, "RuleInvalid", _("The rule cannot be saved: {0}"), 500)
INTERPOLATION_FAILED = _add(3004, "InterpolationFailed", _("The template '{0}' cannot be filled in: {1}"), 500)
RULE_LACKS_AUTHORITY = _add(
    3005,
    "RuleLacksAuthority",
    _(
        "The rule {0} may not {1} {2}: it decides who may do what, which a rule changes only if an administrator has"
        " saved the rule last."
    ),
    500,
)
RULE_NOT_STARTABLE = _add(3006, "RuleNotStartable", _("The rule {0} cannot be started here: {1}"), 500)
SCRIPT_EMPTY = _add(3100, "ScriptEmpty", _("The request has no script."), 400)
SCRIPT_ENCODING = _add(3101, "ScriptEncoding", _("The script is not valid UTF-8."), 400)
SCRIPT_SYNTAX = _add(3102, "ScriptSyntaxError", _("The script cannot be read: {0} (line {1}, column {2})."), 500)
SCRIPT_THREW = _add(3103, "ScriptThrew", _("The script failed: {0} (line {1}, column {2})."), 500)
SCRIPT_LIMIT = _add(3104, "ScriptLimitExceeded", _("The script exceeded its limit: {0}."), 500)
SCRIPT_CANCELLED = _add(3105, "ScriptCancelled", _("{0}"), 500)
SANDBOX_BUSY = _add(3106, "SandboxBusy", _("Every script worker is busy. Try again in {0} seconds."), 503)
TOO_MANY_SCRIPTS = _add(
    3107, "TooManyScripts", _("{0} of your scripts run or wait at the moment. Try again in {1} seconds."), 429
)
SCRIPT_TIME_USED_UP = _add(
    3108,
    "ScriptTimeUsedUp",
    _(
        "Others cannot write while your requests run in a transaction, and these have used up their time. Try again in {0} seconds, or without a transaction and an idempotency key."
    ),
    429,
)
NOTIFICATIONS_LIMITED = _add(
    3109,
    "NotificationsLimited",
    _("Your scripts may leave {0} notifications in a minute. Try again in {1} seconds."),
    429,
)
SCRIPT_INACTIVE = _add(3110, "ScriptInactive", _("The script {0} is not active."), 500)
SCRIPT_LANGUAGE = _add(
    3111, "ScriptLanguageNotSupported", _("The script {0} is written in {1}, which this instance cannot run."), 500
)
SCRIPT_ARGUMENTS = _add(3112, "ScriptArgumentsInvalid", _("The arguments do not fit: {0}"), 500)
SCRIPT_OUTPUTS = _add(3113, "ScriptOutputsInvalid", _("The script's outputs do not fit its schema: {0}"), 500)
SCRIPT_HAS_NO_TEXT = _add(3114, "ScriptHasNoText", _("The script {0} has no text."), 500)
SCRIPT_INVALID = _add(3115, "ScriptInvalid", _("The script cannot be saved: {0}"), 500)
SCRIPT_LACKS_AUTHORITY = _add(
    3116,
    "ScriptLacksAuthority",
    _(
        "The script {0} may not {1} {2}: it decides who may do what, which a managed script changes only if an"
        " administrator runs it and an administrator has saved the script last."
    ),
    500,
)
WEBHOOK_INVALID = _add(3200, "WebhookInvalid", _("The webhook cannot be saved: {0}"), 500)
EGRESS_REFUSED = _add(3201, "EgressRefused", _("Requests to {0} are not allowed from this instance: {1}"), 500)
APPLICATION_INVALID = _add(3300, "TrustedApplicationInvalid", _("The trusted application cannot be saved: {0}"), 500)
EXTENSION_INVALID = _add(3301, "ExtensionInvalid", _("The extension cannot be saved: {0}"), 500)
CUSTOM_ENTITY_INVALID = _add(3302, "CustomEntityInvalid", _("The custom entity cannot be saved: {0}"), 500)
PLAN_NOT_CONFIRMED = _add(
    3303,
    "PlanNotConfirmed",
    _("This change loses data: {0} To confirm it, set PlanToken to {1} and repeat the change."),
    500,
)
CALCULATION_INVALID = _add(
    3310, "CalculatedAttributeInvalid", _("The calculated attribute {0} cannot be evaluated: {1}"), 500
)
CALCULATION_FAILED = _add(3311, "CalculationFailed", _("{0} has no value: row {1} of its definition failed."), 500)
CALCULATION_NOT_QUERYABLE = _add(
    3312,
    "CalculatedAttributeNotQueryable",
    _("{0} can be selected, but not used in a query: the database has no {1}."),
    400,
)
CALCULATION_THREW = _add(3313, "CalculationThrew", _("{0} has no value: its script failed: {1}"), 500)
CALCULATION_NOT_A_COLUMN = _add(
    3314,
    "CalculatedAttributeNotAColumn",
    _("Tables have no {0}, because the database has no {1}. The Domain API computes it."),
    400,
)
JOB_INVALID = _add(3400, "JobInvalid", _("The job cannot be saved: {0}"), 500)
JOB_RUNNING = _add(3401, "JobRunning", _("The job {0} is running or about to run already."), 500)
JOB_FAILED = _add(3402, "JobFailed", _("The job failed: {0}"), 500)
JOB_INTERRUPTED = _add(
    3403,
    "JobInterrupted",
    _("The worker ended while {0} ran, after a part of its changes was committed; nobody knows how far it came."),
    500,
)
JOB_LACKS_AUTHORITY = _add(
    3404,
    "JobLacksAuthority",
    _(
        "The job {0} acts with the rights of the user who saved it last, and that user may not do this, or may no longer sign in."
    ),
    500,
)

del _, _add


@dataclass(frozen=True, slots=True)
class Detail:
    """One of several problems: the property and what is wrong (OData JSON 4.01, 21.1).

    row: the row on an admin page: `Lines(guid)/Quantity`, `Lines[+1]/Quantity` for the second new one.
    about: (repository, guid) of the entity with the problem.
    """

    code: ErrorCode
    parameters: tuple[str, ...] = ()
    target: str | None = None
    row: str | None = None
    about: tuple[str, str] | None = None

    @property
    def message(self) -> str:
        """The text in the active language."""
        return format_message(self.code.message_format, self.parameters)


class PlatformError(Exception):
    """Base of errors that callers may see. `str(error)` is the message in the active language.

    A parameter that holds words, not only names and values, is a `Message`, which is translated for the reader.
    `info` is diagnostics for the developer of the client (script position, console …); it contains no secrets.
    `about` is the entity whose commit failed, (repository, guid), or None; never sent to callers.
    `rule_id` is the guid of the business rule that raised the error, "" for none; never sent to callers.
    """

    about: tuple[str, str] | None = None
    rule_id: str = ""

    def __init__(
        self,
        code: ErrorCode,
        *parameters: object,
        target: str | None = None,
        details: Sequence[Detail] = (),
        info: str | None = None,
    ) -> None:
        self.code = code
        # Clients fill the format themselves, so missing parameters are empty texts.
        missing = placeholders(code.message_format) - len(parameters)
        self.parameters = (*map(written, parameters), *[""] * missing)
        self.target = target
        self.details = tuple(details)
        self.info = info
        super().__init__(code.type, *self.parameters)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code.status

    @property
    def message(self) -> str:
        return format_message(self.code.message_format, self.parameters)

    def __str__(self) -> str:
        return self.message

    def headers(self) -> Mapping[str, str]:
        """HTTP headers that belong to this failure."""
        return {}


class BadRequest(PlatformError):
    """400: the request cannot be understood."""


def unknown_parameter(operation: str, name: str, known: Sequence[str]) -> BadRequest:
    """UNKNOWN_PARAMETER, with the names of those that there are."""
    rest = Message(" It takes {0}.", ", ".join(known)) if known else ""
    return BadRequest(UNKNOWN_PARAMETER, operation, name, rest, target=name)


def repeated_parameter(name: str) -> BadRequest:
    """A parameter that is given twice, in whatever case."""
    return BadRequest(INVALID_VALUE, name, Message("it is given twice"), target=name)


class Unauthorized(PlatformError):
    """401: the request is not authenticated (RFC 6750, 3)."""

    def headers(self) -> Mapping[str, str]:
        if self.code is TOKEN_MISSING:
            return {"WWW-Authenticate": "Bearer"}
        challenge = f'Bearer error="invalid_token", error_description="{_error_description(self)}"'
        return {"WWW-Authenticate": challenge}


def _error_description(error: PlatformError) -> str:
    """The English message with the characters of error_description: %x20-21 / %x23-5B / %x5D-7E (RFC 6750, 3).

    With another one, Django would encode the whole header, which no client decodes.
    """
    text = filled(error.code.message_format, error.parameters).replace('"', "'").replace("\\", "/").replace("…", "...")
    return "".join(each if " " <= each <= "~" else "?" for each in text)


class ProofRefused(Unauthorized):
    """401: a token that is bound to a key, without a valid proof of it (RFC 9449, 7.1).

    error        code of the challenge; nonce: for the next proof, "" for none
    algorithms   those of proofs, with spaces between them
    """

    def __init__(self, reason: str, *, error: str, algorithms: str, nonce: str) -> None:
        super().__init__(TOKEN_INVALID, reason)
        self.error, self.algorithms, self.nonce = error, algorithms, nonce

    def headers(self) -> Mapping[str, str]:
        description = _error_description(self)
        challenge = f'DPoP error="{self.error}", error_description="{description}", algs="{self.algorithms}"'
        return {"WWW-Authenticate": challenge, **({"DPoP-Nonce": self.nonce} if self.nonce else {})}


class Forbidden(PlatformError):
    """403: authenticated, but not allowed. A missing scope is reported as in OAuth (RFC 6750, 3.1)."""

    def headers(self) -> Mapping[str, str]:
        if self.code is not SCOPE_MISSING:
            return {}
        return {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{self.parameters[0]}"'}


class NotFound(PlatformError):
    """404: does not exist, or is not visible to this caller."""


class MethodNotAllowed(PlatformError):
    """405 with the methods that are allowed."""

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        super().__init__(METHOD_NOT_ALLOWED, method, ", ".join(allowed))
        self.allowed = tuple(allowed)

    def headers(self) -> Mapping[str, str]:
        return {"Allow": ", ".join(self.allowed)}


class RequestTimeout(PlatformError):
    """408: the request did not arrive in time."""


class Gone(PlatformError):
    """410: expired, such as a delta link."""


class NotAcceptable(PlatformError):
    """406: no representation that the caller accepts."""


class LengthRequired(PlatformError):
    """411."""


class PayloadTooLarge(PlatformError):
    """413."""


class UrlTooLong(PlatformError):
    """414."""


class HeaderTooLarge(PlatformError):
    """431."""


class UnsupportedMediaType(PlatformError):
    """415."""


class PreconditionFailed(PlatformError):
    """412: the request may not be processed under its conditions."""


class VersionConflict(PreconditionFailed):
    """412: another writer committed first. Nothing was written."""


class _Retryable(PlatformError):
    """A temporary failure; `retry_after_seconds` is sent as Retry-After (RFC 9110, 10.2.3)."""

    def __init__(self, code: ErrorCode, *parameters: object, retry_after_seconds: int, info: str | None = None) -> None:
        super().__init__(code, *parameters, info=info)
        self.retry_after_seconds = max(1, int(retry_after_seconds))

    def headers(self) -> Mapping[str, str]:
        return {"Retry-After": str(self.retry_after_seconds), "Cache-Control": "no-store"}


class TooManyRequests(_Retryable):
    """429: over the rate limit, or another limit of one caller."""

    def __init__(
        self,
        *parameters: object,
        retry_after_seconds: int,
        limit_headers: Mapping[str, str] | None = None,
        code: ErrorCode = RATE_LIMITED,
    ) -> None:
        super().__init__(code, *parameters, retry_after_seconds=retry_after_seconds)
        self.limit_headers = dict(limit_headers or {})

    def headers(self) -> Mapping[str, str]:
        return {**super().headers(), **self.limit_headers}


class Conflict(_Retryable):
    """409: the same request is in progress."""


class UnprocessableContent(PlatformError):
    """422: the request contradicts an earlier one."""


class FailedDependency(PlatformError):
    """424: a part of a batch that depends on one that failed."""


class Refused(PlatformError):
    """500: a valid request, refused by the data, the model or a rule (spec 07)."""


class NotSupported(PlatformError):
    """501: valid OData that this service does not implement; the message names the construct."""

    def __init__(self, construct: str, *, target: str | None = None) -> None:
        super().__init__(NOT_SUPPORTED, construct, target=target)


class Unavailable(_Retryable):
    """503: temporarily unavailable."""


def format_message(message_format: str, parameters: Sequence[str]) -> str:
    """The format in the active language with `{0}`… filled in; a placeholder without a parameter is left out."""
    return filled(gettext(message_format), [translated(parameter, gettext) for parameter in parameters])


def reason(error: Exception) -> str:
    """The reason of an exception, in the active language: a PlatformError's message, the argument of a foreign one."""
    return error.message if isinstance(error, PlatformError) else translated(reason_of(error), gettext)


@dataclass(frozen=True, slots=True)
class RenderedError:
    """The response body `{"error": {...}}` and its status."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)


def render(error: BaseException, *, correlation_id: str, debug: bool) -> RenderedError:
    """Render any failure as a response of the Domain API (spec 07).

    A foreign exception becomes InternalError and shows nothing of itself unless `debug`. The caller logs; rendering has
    no side effect.
    """
    known = error if isinstance(error, PlatformError) else PlatformError(INTERNAL_ERROR, correlation_id)
    body: dict[str, Any] = {
        "message": known.message,
        "code": known.code.number,
        "type": known.code.type,
        "info": _info(error, known, correlation_id=correlation_id, debug=debug),
    }
    if known.parameters:
        body["messageFormat"] = gettext(known.code.message_format)
        body["parameters"] = [translated(parameter, gettext) for parameter in known.parameters]
    if known.target is not None:
        body["target"] = known.target
    if known.details:
        body["details"] = list(_render_details(known.details))
    return RenderedError(known.status, known.headers(), {"error": body})


def _render_details(details: Sequence[Detail]) -> Iterator[dict[str, Any]]:
    for detail in details:
        rendered: dict[str, Any] = {"code": detail.code.number, "message": detail.message}
        if detail.target is not None:
            rendered["target"] = detail.target
        yield rendered


def _info(error: BaseException, known: PlatformError, *, correlation_id: str, debug: bool) -> str:
    if known.info:
        return f"{known.info}\ncorrelation id {correlation_id}"
    if debug and known is not error:
        return "".join([*traceback.format_exception(error), f"correlation id {correlation_id}"])
    return f"correlation id {correlation_id}"
