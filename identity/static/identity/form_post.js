// OAuth 2.0 Form Post Response Mode: hand the answer over without a click where scripts run.
document.getElementById("answer").submit();
