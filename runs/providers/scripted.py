"""`AGENT_MODEL=test:…`: pydantic-ai's own machinery with an answer fixed in the setting, for trying things out."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_ai.models import Model


class BadScript(ValueError):
    """The setting holds no answer; the message says what one looks like."""


def scripted_model(script: str) -> "Model":
    """A model that always gives the JSON object `script`, whose `kind` names the choice. Raises BadScript."""
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    try:
        answer: Any = json.loads(script)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or not isinstance(answer.get("kind"), str):
        example = 'test:{"kind": "escalate", "rationale": "Tried out"}'
        raise BadScript(f"AGENT_MODEL starts with test: and goes on with no answer; write, for example, {example}")

    async def give(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart(answer["kind"], answer)])

    return FunctionModel(give, model_name="scripted")
