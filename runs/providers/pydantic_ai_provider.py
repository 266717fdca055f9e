"""Models through pydantic-ai, which is imported only when one is asked: it costs half a second and 50 MB.

One question, one answer: a bad answer is not asked for again in here, because the engine bounds and records refusals.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runs.money import Strict
from runs.providers.base import ProviderDown, Turn
from runs.texts import storable

if TYPE_CHECKING:
    from pydantic_ai.models import Model

LIMIT_SECONDS = 45.0
OUTPUT_TOKENS = 4000
EXTRAS = {"openai": "openai", "openai-chat": "openai", "openai-responses": "openai", "anthropic": "anthropic"}


class ProviderMisconfigured(ProviderDown):
    """The model cannot be asked before somebody changes the settings or the installation; the message says what."""


class PydanticAiProvider:
    """Asks the model that `model` names (`openai:…`, `anthropic:…`) or is; `limit` seconds in all."""

    name = "pydantic-ai"

    def __init__(self, model: "str | Model", *, limit: float = LIMIT_SECONDS) -> None:
        self._model = model
        self._limit = limit

    def choose(self, *, view: dict[str, Any], choices: Sequence[type[Strict]], instructions: str) -> Turn:
        """See `runs.providers.base.Provider`. The transcript is kept when the answer is bad, too."""
        from pydantic_ai import capture_run_messages
        from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior, UsageLimitExceeded, UserError

        model = self._resolved()
        label = f"{model.system}:{model.model_name}"[:120]
        prompt = json.dumps(view, ensure_ascii=False, sort_keys=True)
        with capture_run_messages() as messages:
            try:
                result = asyncio.run(self._ask(model, prompt, choices, instructions))
            except TimeoutError as error:
                raise ProviderDown(f"{label} gave no answer within {self._limit:g} s.") from error
            except ModelAPIError as error:
                raise ProviderDown(f"{label} could not be asked: {str(error)[:500]}") from error
            except UserError as error:
                raise ProviderMisconfigured(f"{label} is not set up: {str(error)[:500]}") from error
            except (UnexpectedModelBehavior, UsageLimitExceeded) as error:
                failure = _reason(error)
                return Turn(model=label, answer=None, failure=failure, messages=_kept(messages))
        usage = result.usage
        counted = {name: int(getattr(usage, name)) for name in ("requests", "input_tokens", "output_tokens")}
        kept = _kept(messages)
        given = _answers(messages)
        if given != 1:
            failure = f"The model gave {given} choices at once; give exactly one."
            return Turn(model=label, answer=None, failure=failure, messages=kept, usage=counted)
        answer = storable(result.output.model_dump(mode="json"))
        return Turn(model=label, answer=answer, messages=kept, usage=counted)

    def ready(self) -> None:
        """Whether it could be asked, without asking. Raises ProviderMisconfigured."""
        self._resolved()

    def _resolved(self) -> "Model":
        """The model to ask. Raises ProviderMisconfigured when its name is unknown, its SDK or its key missing."""
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model

        if not isinstance(self._model, str):
            return self._model
        vendor = self._model.partition(":")[0]
        try:
            return infer_model(self._model)
        except ImportError as error:
            extra = EXTRAS.get(vendor, vendor)
            remedy = f"install it: .venv/bin/python -m pip install 'pydantic-ai-slim[{extra}]'"
            raise ProviderMisconfigured(
                f"AGENT_MODEL is {self._model}, whose SDK is not installed; {remedy}"
            ) from error
        except (UserError, ValueError) as error:
            raise ProviderMisconfigured(f"AGENT_MODEL is {self._model}: {str(error)[:500]}") from error

    async def _ask(self, model: "Model", prompt: str, choices: Sequence[type[Strict]], instructions: str) -> Any:
        from pydantic_ai import Agent, ToolOutput, UsageLimits
        from pydantic_ai.settings import ModelSettings

        agent = Agent(
            model,
            output_type=[ToolOutput(choice, name=choice.model_fields["kind"].default) for choice in choices],
            instructions=instructions,
            retries=0,
            name="agent",
        )
        # one request: with none left for a second, the library cannot ask again whatever it makes of the answer
        limits = UsageLimits(request_limit=1, output_tokens_limit=OUTPUT_TOKENS)
        settings = ModelSettings(timeout=self._limit, max_tokens=OUTPUT_TOKENS)
        # its own settings' time-out is per read and not honoured by every model: the total limit is here
        return await asyncio.wait_for(agent.run(prompt, usage_limits=limits, model_settings=settings), self._limit)


def _reason(error: Exception) -> str:
    """Why there is no usable answer, in words a model can act on: the library's, and what validation said below it."""
    parts = [str(error)]
    cause = error.__cause__
    while cause is not None and len(parts) < 4:
        parts.append(str(cause))
        cause = cause.__cause__
    return str(storable("; ".join(parts)))[:2000]


def _kept(messages: Any) -> Any:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return storable(json.loads(ModelMessagesTypeAdapter.dump_json(list(messages))))


def _answers(messages: Any) -> int:
    """How many choices the model's answer held."""
    from pydantic_ai.messages import ModelResponse, ToolCallPart

    answers = [message for message in messages if isinstance(message, ModelResponse)]
    return sum(isinstance(part, ToolCallPart) for message in answers for part in message.parts)
