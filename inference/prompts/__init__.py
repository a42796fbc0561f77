"""The only prompt builder for judging responses: what is trained, served and evaluated is rendered here.

The prompts of the CREATE benchmark stand beside what asks them, on the fences and templates of `text`.

Chat prompts put the constant part first (task, rubric), then the scenario, then the response, so that a prefix cache
can reuse it; their templates are the text files beside this one. The plain prompts of learned judges and analysts are
in `compact`: the rubric is in the weights, so only the scenario and the response are left.

Responses are untrusted, and so is what models wrote about them. They are inserted in one pass (a placeholder inside
stays text), into a fence longer than any run of backticks inside, and control tokens in them are broken up by `defuse`.
"""

from inference.prompts.compact import (
    Question,
    analyst_prompt,
    compact_prompt,
    evidence_known,
    evidence_line,
    evidence_prompt,
    evidence_questions,
    item_quotations,
    raw_known,
    raw_questions,
    remembered,
    says_nothing,
    step_memory,
)
from inference.prompts.describe import describe
from inference.prompts.evidence import NOTHING, analysis_messages, evidence_labels, evidence_messages, evidence_text
from inference.prompts.judging import (
    assistant,
    chat_messages,
    choice_messages,
    complaint_message,
    reconsider_message,
    refine_message,
    step_message,
    steps_opening,
    table_messages,
)
from inference.prompts.text import defuse, fence, template_digest

__all__ = [
    "NOTHING",
    "Question",
    "analysis_messages",
    "analyst_prompt",
    "assistant",
    "chat_messages",
    "choice_messages",
    "compact_prompt",
    "complaint_message",
    "defuse",
    "describe",
    "evidence_known",
    "evidence_labels",
    "evidence_line",
    "evidence_messages",
    "evidence_prompt",
    "evidence_questions",
    "evidence_text",
    "fence",
    "item_quotations",
    "raw_known",
    "raw_questions",
    "reconsider_message",
    "refine_message",
    "remembered",
    "says_nothing",
    "step_memory",
    "step_message",
    "steps_opening",
    "table_messages",
    "template_digest",
]
